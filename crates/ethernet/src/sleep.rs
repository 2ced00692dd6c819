//! Sleeping until a frame comes or a timer of the protocol is due.

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use rustix::time::{timerfd_create, timerfd_settime};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// The descriptors that a function sleeps on.
pub(crate) struct Sleeper {
    /// Readable when the network or the alarm is: for programs that wait for several things.
    epoll: OwnedFd,
    alarm: OwnedFd,
    /// The generation of the network's descriptors that are in `epoll`.
    watched: Option<u64>,
    /// Some of the network's descriptors may be in `epoll`.
    may_watch: bool,
    /// When the alarm goes off, in ns of the transport's clock, if it is set.
    alarm_ns: Option<u64>,
    sleeps: u64,
    woken: u64,
}

impl Sleeper {
    pub fn new() -> io::Result<Sleeper> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let alarm = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        watch(&epoll, alarm.as_fd())?;
        Ok(Sleeper {
            epoll,
            alarm,
            watched: None,
            may_watch: false,
            alarm_ns: None,
            sleeps: 0,
            woken: 0,
        })
    }

    /// From now on the epoll descriptor is readable when one of `network` is, too. It is not so
    /// from the start, because each arriving frame then costs the kernel a wake-up. Those of a
    /// generation that is watched already cost no system call. `false`: the kernel refuses.
    pub fn watch(&mut self, network: &[BorrowedFd<'_>], generation: Option<u64>) -> bool {
        if generation.is_some() && self.watched == generation {
            return true;
        }
        self.may_watch = true;
        let is_watched = network.iter().all(|&fd| watch(&self.epoll, fd).is_ok());
        self.watched = generation.filter(|_| is_watched);
        is_watched
    }

    /// The epoll descriptor is no more readable when one of `network` is, so arriving frames cost
    /// no wake-up any more.
    pub fn unwatch(&mut self, network: &[BorrowedFd<'_>]) {
        if self.may_watch {
            // One that is not there, as it was opened since, need not be taken out.
            for fd in network {
                let _ = epoll::delete(&self.epoll, fd);
            }
        }
        (self.watched, self.may_watch) = (None, false);
    }

    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// The descriptor becomes readable at `at_ns`, if nothing comes before; `None`: only when
    /// something comes. An alarm that went off is reset. One that is set for an earlier time stays:
    /// deadlines move on with each frame, and each reset is a system call. `false`: the kernel
    /// refuses, so do not sleep.
    pub fn set_alarm(&mut self, at_ns: Option<u64>, now_ns: u64) -> bool {
        if at_ns.is_none() && self.alarm_ns.is_none() {
            return true;
        }
        self.sleeps += 1;
        if let (Some(set_ns), Some(at_ns)) = (self.alarm_ns, at_ns)
            && (now_ns + 1..=at_ns).contains(&set_ns)
        {
            return true;
        }
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Zero would disarm the timer.
        let delay = |at_ns: u64| Duration::from_nanos(at_ns.saturating_sub(now_ns).max(1));
        let it_value = at_ns.map_or(it_interval, |at_ns| timespec(delay(at_ns)));
        let time = Itimerspec { it_interval, it_value };
        self.alarm_ns = at_ns;
        timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &time).is_ok()
    }

    /// Sleeps until one of `network` is readable, at most for `timeout`, by one system call. Tells
    /// `wake` the indices of the readable ones.
    pub fn sleep(
        &mut self,
        network: &[BorrowedFd<'_>],
        timeout: Option<Duration>,
        wake: impl FnMut(usize),
    ) -> io::Result<()> {
        let fds = network.iter().map(|fd| PollFd::new(fd, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = fds.collect();
        self.sleeps += 1;
        match poll(&mut fds, timeout.map(timespec).as_ref()) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => {
                self.woken += 1;
                (0..fds.len()).filter(|&index| !fds[index].revents().is_empty()).for_each(wake);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// How often the function slept, and how often a frame woke it. All other frames are received
    /// by polling (H-08).
    pub fn rows(&self) -> [(&'static str, u64); 2] {
        [("sleeps", self.sleeps), ("woken_by_frames", self.woken)]
    }
}

/// Adds a descriptor to `epoll`; one that is there already stays.
fn watch(epoll: &OwnedFd, fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    match epoll::add(epoll, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN) {
        Err(Errno::EXIST) => Ok(()),
        added => added,
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec::try_from(time).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}
