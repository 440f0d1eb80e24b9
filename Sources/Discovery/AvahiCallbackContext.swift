/// What a C object carries as userdata: who is told, and in whose name.
///
/// Kept alive by the connection for as long as the C object lives.
final class AvahiCallbackContext: Sendable {
    let purpose: AvahiObjectKey
    private unowned let engine: AvahiEngine

    init(purpose: AvahiObjectKey, engine: AvahiEngine) {
        self.purpose = purpose
        self.engine = engine
    }

    /// Tells the engine; only from a callback, which by libavahi's rules runs on the thread that turns its poll.
    func report(_ fact: AvahiEvent) {
        engine.assumeIsolated { $0.receive(fact, from: self) }
    }

    static func report(_ fact: AvahiEvent, to userdata: UnsafeMutableRawPointer?) {
        guard let userdata else { return }
        Unmanaged<AvahiCallbackContext>.fromOpaque(userdata).takeUnretainedValue().report(fact)
    }
}
