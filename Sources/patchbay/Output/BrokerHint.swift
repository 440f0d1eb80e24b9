/// Adds the option `--broker` of a command line to the commands that its hints name.
struct BrokerHint {
    /// The value of `--broker`; nil without the option.
    let broker: String?

    init(broker: String?) { self.broker = broker }

    /// Takes the option from a command line, also from one that the parser rejects.
    init(arguments: [String]) { broker = Self.value(of: "--broker", in: arguments) }

    /// Returns the last value of an option in a command line; nil without the option.
    static func value(of option: String, in arguments: [String]) -> String? {
        let words = arguments.prefix { $0 != "--" }
        return words.lastIndex { $0 == option || $0.hasPrefix("\(option)=") }.flatMap { index in
            words[index] == option ? words[(index + 1)...].first : String(words[index].dropFirst(option.count + 1))
        }
    }

    /// Commands that use no broker, or the broker of the machine.
    private static let local: Set = ["ask", "help", "join", "leave", "brokers", "iproxy"]
    /// Commands that only an owner may use.
    private static let ownerOnly: Set = [
        "add", "advertise", "advertisements", "approve", "audit", "pair", "profiles", "remote", "requests", "rm",
        "unapprove",
    ]
    private static let program = "patchbay "

    /// Returns the hint with the option behind each command that can use it.
    ///
    /// A client with a grant is no owner. Its hint says where an owner's command has to run.
    func completed(_ hint: String) -> String {
        guard let broker, !hint.contains("--broker") else { return hint }
        let isOwner = broker.hasPrefix("ssh://")
        var (completed, rest) = ("", hint[...])
        while let range = rest.firstRange(of: Self.program) {
            completed += rest[..<range.upperBound]
            rest = rest[range.upperBound...]
            let words = rest.split(separator: " ").map { String($0.prefix { $0.isLetter || $0 == "-" }) }
            let path = CommandSuggestion.command(in: words, below: Patchbay.self).dropFirst(Self.program.count)
            guard let name = path.split(separator: " ").first.map(String.init), rest.hasPrefix(path),
                !Self.local.contains(name), !rest.dropFirst(path.count).hasPrefix(" --help")
            else { continue }
            if !isOwner, Self.ownerOnly.contains(name) {
                if completed == Self.program, JoinedBroker.isName(broker) { return "on the broker's machine: \(hint)" }
                continue
            }
            completed += "\(path) --broker \(broker)"
            rest = rest.dropFirst(path.count)
        }
        return completed + rest
    }
}
