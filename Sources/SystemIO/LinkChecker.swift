/// Knows of a stream that has ended whether the way it took is still there: where it is not, the end is none that the
/// other side meant, but a cut.
package protocol LinkChecker: Sendable {
    /// Is asked once, after the stream has ended, and does not wait.
    ///
    /// The answer comes once and soon, from any thread, perhaps before this call returns. Whoever asks gives up after a
    /// while: of a way about which nobody can be asked any more, nothing good is to be supposed.
    func ask(_ answer: @escaping @Sendable (_ isWayThere: Bool) -> Void)
}
