/// Selects network interfaces by globs on their names: `*` matches any run of characters, `?` matches one.
package struct InterfaceFilter: Sendable, Hashable {
    package let allowed: [String]
    package let denied: [String]

    package init(allowed: [String], denied: [String]) {
        self.allowed = allowed
        self.denied = denied
    }

    /// Returns true if no glob of `denied` matches and, unless `allowed` is empty, one of `allowed` does.
    package func accepts(_ name: String) -> Bool {
        if denied.contains(where: { Self.matches(name, $0) }) { return false }
        return allowed.isEmpty || allowed.contains { Self.matches(name, $0) }
    }

    /// Matches with at most one backtrack position per `*`, so that no pattern takes exponential time.
    private static func matches(_ name: String, _ glob: String) -> Bool {
        let (name, glob) = (Array(name.utf8), Array(glob.utf8))
        let (star, any) = (UInt8(ascii: "*"), UInt8(ascii: "?"))
        var (position, pattern) = (0, 0)
        var retry: (position: Int, pattern: Int)?
        while position < name.count {
            if pattern < glob.count, glob[pattern] == star {
                retry = (position, pattern)
                pattern += 1
            } else if pattern < glob.count, glob[pattern] == any || glob[pattern] == name[position] {
                position += 1
                pattern += 1
            } else if let last = retry {
                retry = (last.position + 1, last.pattern)
                (position, pattern) = (last.position + 1, last.pattern + 1)
            } else {
                return false
            }
        }
        return glob[pattern...].allSatisfy { $0 == star }
    }
}
