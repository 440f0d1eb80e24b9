import Model

/// The command line of iproxy 2.0.2, parsed like getopt_long(3).
///
/// Options can stand anywhere, short options can be combined, and long options can be abbreviated.
struct IproxyArguments: Equatable {
    struct Pair: Equatable {
        let local: UInt16
        let device: UInt16
    }

    enum Request: Equatable {
        case help
        case version
        case forward(IproxyArguments)
    }

    var udid: String?
    var takesUSB = false
    var takesNetwork = false
    var source: String?
    var debugLevel = 0
    /// The broker's socket. An addition of Patchbay.
    var socket: String?
    /// The protections to lift. An addition of Patchbay; iproxy has no protections.
    var allowAnyUser = false
    var allowBrowsers = false
    var pairs: [Pair] = []

    private static let longOptions: [String: Character] = [
        "udid": "u", "network": "n", "local": "l", "source": "s", "help": "h", "debug": "d", "version": "v",
    ]

    /// Parses a command line.
    ///
    /// - Throws: `CLIError` with iproxy's exit codes: 2 for an invalid command line, 234 (EINVAL) for an invalid port.
    static func read(_ arguments: [String]) throws(CLIError) -> Request {
        var read = IproxyArguments()
        var words: [String] = []
        var rest = arguments[...]
        while let word = rest.popFirst() {
            if word == "--" {
                words += rest
                break
            }
            var options: [(name: Character, value: String?)] = []
            if word == "--allow-any-user" {
                read.allowAnyUser = true
            } else if word == "--allow-browsers" {
                read.allowBrowsers = true
            } else if word == "--socket" || word.hasPrefix("--socket=") {
                options = [("S", word == "--socket" ? nil : String(word.dropFirst(9)))]
            } else if word.hasPrefix("--") {
                options = [try long(word)]
            } else if word.hasPrefix("-"), word.count > 1 {
                options = try short(word)
            } else {
                words.append(word)
            }
            for (name, value) in options {
                if name == "h" { return .help }
                if name == "v" { return .version }
                try read.apply(name, value, from: &rest)
            }
        }
        try read.readPorts(words)
        return .forward(read)
    }

    private mutating func apply(_ name: Character, _ value: String?, from rest: inout ArraySlice<String>)
        throws(CLIError)
    {
        switch name {
        case "d": debugLevel += 1
        case "l": takesUSB = true
        case "n": takesNetwork = true
        default:
            guard let value = value ?? rest.popFirst() else { throw Self.wrong("option -\(name) requires an argument") }
            switch name {
            case "u" where value.isEmpty: throw Self.wrong("UDID must not be empty")
            case "u": udid = value
            case "s" where value.isEmpty: throw Self.wrong("source address must not be empty")
            case "s": source = value
            default: socket = value
            }
        }
    }

    private static func long(_ word: String) throws(CLIError) -> (Character, String?) {
        let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        let fitting = longOptions.filter { $0.key.hasPrefix(name) }
        guard let option = longOptions[name] ?? (fitting.count == 1 ? fitting.first?.value : nil) else {
            throw wrong("unrecognized option \"\(SanitizedText(word))\"")
        }
        let value = parts.count > 1 ? String(parts[1]) : nil
        if value != nil, option != "u", option != "s" { throw wrong("option --\(name) takes no argument") }
        return (option, value)
    }

    /// Parses combined short options: `-dlu UDID`, `-uUDID`.
    private static func short(_ word: String) throws(CLIError) -> [(name: Character, value: String?)] {
        var options: [(name: Character, value: String?)] = []
        var letters = word.dropFirst()
        while let letter = letters.popFirst() {
            switch letter {
            case "d", "h", "l", "n", "v": options.append((letter, nil))
            case "u", "s":
                options.append((letter, letters.isEmpty ? nil : String(letters)))
                letters = ""
            default: throw wrong("invalid option -- '\(SanitizedText(String(letter)))'")
            }
        }
        return options
    }

    /// Parses the port pairs, or the legacy form `LOCAL_PORT DEVICE_PORT [UDID]`.
    private mutating func readPorts(_ words: [String]) throws(CLIError) {
        guard !words.isEmpty else { throw Self.wrong("not enough parameters, need at least one pair of ports") }
        if (2...3).contains(words.count), words.allSatisfy({ !$0.contains(":") }) {
            pairs = [
                Pair(
                    local: try Self.port(words[0], of: "listen", in: words[0]),
                    device: try Self.port(words[1], of: "device", in: words[1])
                )
            ]
            if words.count == 3 {
                guard udid == nil || udid == words[2] else { throw Self.wrong("the command line has two UDIDs") }
                udid = words[2]
            }
            return
        }
        for word in words {
            let parts = word.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2 else {
                throw Self.invalid("\"\(SanitizedText(word))\" is not a pair of ports")
            }
            let pair = Pair(
                local: try Self.port(parts[0], of: "listen", in: word),
                device: try Self.port(parts[1], of: "device", in: word)
            )
            if pairs.contains(where: { $0.local == pair.local }) {
                throw Self.invalid("the listen port \(pair.local) occurs twice")
            }
            pairs.append(pair)
        }
    }

    private static func port(_ text: String, of what: String, in word: String) throws(CLIError) -> UInt16 {
        guard let port = UInt16(text), port > 0, text.allSatisfy(\.isNumber) else {
            throw invalid(
                "invalid \(what) port specified in argument \"\(SanitizedText(word))\"; it must be 1 to 65535"
            )
        }
        return port
    }

    private static func wrong(_ message: String) -> CLIError {
        CLIError(status: .usage, message: message, hint: "patchbay iproxy --help", exitCode: 2)
    }

    private static func invalid(_ message: String) -> CLIError {
        CLIError(status: .usage, message: message, hint: "patchbay iproxy 2222:22", exitCode: 234)
    }
}
