import CAvahi

/// The event loop that clients of libavahi are made on.
///
/// Thread safety: it is made by `AvahiThreadExecutor` on its thread and handed only to the actor that runs there.
struct AvahiPollPointer: @unchecked Sendable {
    let api: UnsafePointer<AvahiPoll>

    init(_ api: UnsafePointer<AvahiPoll>) { self.api = api }
}
