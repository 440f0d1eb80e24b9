/// What a thread runs, in a form that survives pthread_create's void pointer.
final class AvahiThreadBody: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}
