import FoundationEssentials

/// The default route of this machine.
enum DefaultRoute {
    /// The columns of the kernel's table (fib_trie.c, fib_route_seq_show).
    private enum Column: Int {
        case interface = 0
        case destination = 1
        case metric = 6
        case mask = 7
    }

    /// Returns the name of the interface to other networks over IPv4; nil without a default route.
    static func interface() -> String? {
        guard let table = try? String(contentsOfFile: "/proc/net/route", encoding: .utf8) else { return nil }
        return interface(in: table)
    }

    /// Finds the default route with the lowest metric, which the kernel prefers.
    static func interface(in table: String) -> String? {
        let routes = table.split(separator: "\n").dropFirst().compactMap { line -> (name: Substring, metric: Int)? in
            let words = line.split { $0 == "\t" || $0 == " " }
            guard words.count > Column.mask.rawValue, words[Column.destination.rawValue] == "00000000",
                words[Column.mask.rawValue] == "00000000", let metric = Int(words[Column.metric.rawValue])
            else { return nil }
            return (words[Column.interface.rawValue], metric)
        }
        return routes.min { $0.metric < $1.metric }.map { String($0.name) }
    }
}
