import Testing

extension Tag {
    /// Takes most of a minute, because it waits for D-Bus's own timeout of 25 s.
    @Tag static var slow: Tag
}
