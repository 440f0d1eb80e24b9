import Model

/// Ports that follow each other, `9000-9009` in a pair of `patchbay forward`.
struct PortRange: Equatable {
    /// More than a phone has debug servers, fewer than anybody types by accident.
    static let limit = 256

    let ports: ClosedRange<UInt16>

    /// Nil for a word that is no range; a single port is none.
    init?(_ text: some StringProtocol) {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, ends.allSatisfy({ $0.allSatisfy(\.isNumber) }), let first = UInt16(ends[0]),
            let last = UInt16(ends[1]), first > 0, first <= last
        else { return nil }
        ports = first...last
    }

    /// A pair for each port of the ranges in `[LOCAL:]REMOTE`; the text alone when there is no range in it.
    ///
    /// `9000-9009` is the same ports here, `0:9000-9009` any free ones, `8000-8009:9000-9009` one for one.
    /// - Throws: `CLIError`.
    static func expand(_ text: String) throws(CLIError) -> [String] {
        var parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard !text.hasPrefix("unix:"), let remote = parts.popLast().flatMap({ PortRange($0) }) else { return [text] }
        guard remote.ports.count <= limit else {
            throw .usage("\"\(SanitizedText(text))\" is more than \(limit) ports", try: "a shorter range, or several")
        }
        guard let local = parts.popLast() else { return remote.ports.map { "\($0)" } }
        if local == "0" { return remote.ports.map { (parts + ["0", "\($0)"]).joined(separator: ":") } }
        guard let range = PortRange(local), range.ports.count == remote.ports.count else {
            throw .usage(
                "\"\(SanitizedText(text))\" has not as many local ports as ports of the phone",
                try: "0:\(remote), \(remote) or \(remote):\(remote)"
            )
        }
        return zip(range.ports, remote.ports).map { (parts + ["\($0)", "\($1)"]).joined(separator: ":") }
    }
}

extension PortRange: CustomStringConvertible {
    var description: String { "\(ports.lowerBound)-\(ports.upperBound)" }
}
