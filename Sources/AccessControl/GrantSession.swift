/// One thing that lives under a grant: a tunnel, a stream.
package struct GrantSession: Hashable, Sendable {
    /// The use inside which this task runs, if it does: ending that one is not waited for, it would wait for itself.
    @TaskLocal static var current: GrantSession?

    package let grant: String
    let number: UInt64
}
