import FoundationEssentials
import Glibc
import Model

/// Adapts the command of a finding to the user and to the programs of this machine.
struct MachineCommand {
    /// The process of the broker; nil if the broker does not run or does not say.
    var broker: Int32?
    var isRoot = geteuid() == 0
    var hasSudo = Self.isInstalled("sudo")
    /// True if systemd is the machine's first process (sd_booted(3)).
    var hasSystemd = access("/run/systemd/system", F_OK) == 0

    private static let sudo = "sudo "

    /// Returns the command without `sudo` for root, and without `systemctl` where systemd does not run.
    ///
    /// A text that is no such command stays as it is.
    func adapted(_ hint: String) -> String {
        let command = hasSystemd ? hint : withoutSystemd(hint)
        guard command.hasPrefix(Self.sudo), isRoot || !hasSudo else { return command }
        // A whole command begins with it, and so does each part of a list.
        let plain = String(command.dropFirst(Self.sudo.count)).replacing("&& \(Self.sudo)", with: "&& ")
        return isRoot ? plain : "su -c \(plain.shellQuoted)"
    }

    /// Replaces `systemctl VERB UNIT…` by service(8), or by the program itself for the broker, and systemd's time server by
    /// another one.
    private func withoutSystemd(_ command: String) -> String {
        if command.hasPrefix("sudo timedatectl ") { return "sudo apt install chrony" }
        for verb in ["restart", "start"] {
            let call = "systemctl \(verb) "
            guard let range = command.firstRange(of: call) else { continue }
            let units = command[range.upperBound...].split(separator: " ")
            guard units.allSatisfy({ $0.allSatisfy { $0.isLetter || $0 == "-" } }) else { continue }
            if units == ["patchbayd"] { return broker.map { "sudo kill \($0) && patchbayd" } ?? "patchbayd" }
            let before = command[..<range.lowerBound]
            let prefix = before.hasSuffix(Self.sudo) ? before.dropLast(Self.sudo.count) : before
            return prefix + units.map { "sudo service \($0) \(verb)" }.joined(separator: " && ")
        }
        return command
    }

    private static func isInstalled(_ program: String) -> Bool {
        let folders = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return folders.split(separator: ":").contains { access("\($0)/\(program)", X_OK) == 0 }
    }
}
