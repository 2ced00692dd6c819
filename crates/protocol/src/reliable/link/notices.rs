//! What the user of a link has not been told yet.

/// Events of one link. Each is told once.
#[derive(Default)]
pub(crate) struct Notices {
    up: bool,
    gates: bool,
    down: Down,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Down {
    #[default]
    No,
    Untold,
    Told,
}

impl Notices {
    /// The link came up.
    pub fn up(&mut self) {
        self.up = true;
    }

    /// A gate of the peer changed.
    pub fn gates(&mut self) {
        self.gates = true;
    }

    /// The link is down, and nothing must be told before. Returns whether that is news.
    pub fn down(&mut self) -> bool {
        let is_news = self.down == Down::No;
        if is_news {
            self.down = Down::Untold;
        }
        is_news
    }

    pub fn take_up(&mut self) -> bool {
        core::mem::take(&mut self.up)
    }

    pub fn take_gates(&mut self) -> bool {
        core::mem::take(&mut self.gates)
    }

    pub fn take_down(&mut self) -> bool {
        let is_untold = self.is_down_untold();
        if is_untold {
            self.down = Down::Told;
        }
        is_untold
    }

    /// Whether gates changed.
    #[inline]
    pub fn has_gates(&self) -> bool {
        self.gates
    }

    /// Whether the end of the link is still to be told.
    pub fn is_down_untold(&self) -> bool {
        self.down == Down::Untold
    }
}
