/// What a program says about itself when it listens, for `ListListeners`.
struct ListenerInfo: Hashable, Sendable {
    let name: String
    let bundleID: String?
    let libraryVersion: Int
}
