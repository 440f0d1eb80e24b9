import FoundationEssentials

/// The current thread.
enum Thread {
    static var name: String {
        let text = String(
            decoding: FileManager.default.contents(atPath: "/proc/thread-self/comm") ?? Data(),
            as: UTF8.self
        )
        return String(text.prefix { !$0.isNewline })
    }
}
