package import Model

/// The phones on the cable.
package struct Phones: Sendable {
    package let list: @Sendable () async -> [Device]
    /// The list as it stands, then again after every change.
    package let lists: @Sendable () async -> AsyncStream<[Device]>

    package init(
        list: @escaping @Sendable () async -> [Device],
        lists: @escaping @Sendable () async -> AsyncStream<[Device]>
    ) {
        self.list = list
        self.lists = lists
    }
}
