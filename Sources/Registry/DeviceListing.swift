package import Model

/// The list of phones that the clients of the broker see: the attached ones, and in a team those of the other hosts.
package protocol DeviceListing: Sendable {
    func devices() async -> [Device]

    /// Returns a stream of the current list and of every later list. A slow reader gets only the newest list.
    func deviceLists() async -> AsyncStream<[Device]>
}
