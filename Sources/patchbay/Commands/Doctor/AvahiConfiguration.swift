/// The file avahi-daemon.conf(5), and the commands that change a key of it.
struct AvahiConfiguration {
    /// The place of Debian's package.
    static let standardPath = "/etc/avahi/avahi-daemon.conf"

    let path: String
    let exists: Bool
    private let text: String

    /// Reads the file. A missing file leaves every key at its default.
    init(path: String = Self.standardPath) {
        self.path = path
        let content = KernelSockets.text(of: path)
        exists = content != nil
        text = content ?? ""
    }

    /// Returns the last value of a key in a section; nil if the key is absent or commented out.
    func value(of key: String, in section: String) -> String? {
        var current = ""
        var value: String?
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.filter { !$0.isWhitespace }
            if words.hasPrefix("[") { current = words }
            let parts = words.split(separator: "=", maxSplits: 1)
            if current == "[\(section)]", parts.count == 2, parts[0] == key { value = String(parts[1]) }
        }
        return value
    }

    /// Returns the number of a key; nil if the key is absent or has another value.
    func number(of key: String, in section: String) -> Int? { value(of: key, in: section).flatMap { Int($0) } }

    /// Returns the command that sets a key, also where the file has it as a comment or not at all, and restarts Avahi.
    func command(setting key: String, to value: String, in section: String) -> String {
        "sudo sh -c '\(edit(setting: key, to: value, in: section))' && sudo systemctl restart avahi-daemon"
    }

    /// Returns the edit alone, for a shell. It has no single quotation mark.
    func edit(setting key: String, to value: String, in section: String) -> String {
        let line = "\(key)=\(value)"
        if self.value(of: key, in: section) != nil {
            // avahi-daemon reads a key anywhere below its section, so the edit is limited to the section's lines.
            return "sed -i \"/^ *\\[\(section)\\]/,/^ *\\[/s|^ *\(key) *=.*|\(line)|\" \(path)"
        }
        if text.split(whereSeparator: \.isNewline).contains(where: { $0.filter { !$0.isWhitespace } == "[\(section)]" })
        {
            return "sed -i \"/^ *\\[\(section)\\]/a \(line)\" \(path)"
        }
        return "printf \"\\n[\(section)]\\n\(line)\\n\" >>\(path)"
    }
}
