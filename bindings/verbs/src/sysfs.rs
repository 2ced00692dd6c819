//! What programs ask the library about files below `/sys`. Nothing there is needed or written.

/// The folder that `ibv_get_sysfs_path` names.
pub fn folder() -> String {
    match std::env::var("SYSFS_PATH") {
        Ok(path) if !path.is_empty() => path.trim_end_matches('/').to_owned(),
        _ => "/sys".to_owned(),
    }
}

/// The answer for a file of a device, relative to its folder.
pub fn attribute(device: &crate::device::DeviceObject, file: &str) -> Option<String> {
    let all = device.own.attributes();
    all.into_iter().find(|(name, _)| *name == file).map(|(_, text)| text)
}
