import FoundationEssentials
import Glibc
import Model
import SystemIO

/// The folder `team` in the state folder of a broker, as root or the broker's user reads and writes it.
///
/// The API has no such function: the key of the authority never passes through a broker, whose owners may not read it.
struct TeamAuthorityFolder {
    /// The state folder.
    let state: String

    /// The result of an import.
    enum Outcome: Equatable {
        /// This machine continues as the host with this name.
        case restored(host: String, team: String)
        /// This member got the authority of another host of its team.
        case takenOver(host: String, from: String)

        /// The name of this machine in the team.
        var host: String {
            switch self {
            case .restored(let host, _), .takenOver(let host, _): host
            }
        }
    }

    private var folder: String { "\(state)/team" }

    /// The files of a backup. Those that exist are in it.
    private static let files = [
        "ca.pem", "ca-key.pem", "root.pem", "etcd-ca.pem", "host.pem", "members.json", "removals.json",
        // The last one: with it, the host belongs to the team.
        membership,
    ]
    private static let membership = "membership.json"
    /// The files that another member of the team takes over.
    private static let authorityFiles = ["root.pem", "etcd-ca.pem", "ca-key.pem"]

    /// Returns the contents of all files as JSON.
    ///
    /// - Throws: `CLIError`, also on a host without the authority.
    func backup() throws(CLIError) -> String {
        guard access(folder, R_OK | X_OK) == 0 || errno == ENOENT else {
            throw .notPermitted("\(folder) belongs to the broker's user", try: "run the command with sudo")
        }
        guard text(of: "ca-key.pem") != nil else {
            throw .failed(
                "\(folder) has no certificate authority of a team",
                try: "run it on the authority, which patchbay team names, or name its --state-directory"
            )
        }
        var backup = JSONObject()
        for name in Self.files { backup[name] = text(of: name).map { .string($0) } }
        return JSON.object(backup).text
    }

    /// Writes the files of a backup. Into the folder of another member of the team, only those of the authority.
    ///
    /// - Throws: `CLIError`, for a host of another team.
    func restore(_ text: String) throws(CLIError) -> Outcome {
        guard let backup = (try? JSON(parsing: text))?.object, let saved = Self.content(of: backup),
            let host = saved["host"]?.string, let team = saved["team"]?.string, backup["ca-key.pem"]?.string != nil
        else { throw .failed("the file is no backup of a team's authority", try: nil) }
        guard let own = self.text(of: Self.membership) else {
            try makeFolder()
            for name in Self.files { try write(backup[name], to: name) }
            return .restored(host: host, team: team)
        }
        var document = (try? JSON(parsing: own))?.object ?? JSONObject()
        var membership = document["content"]?.object ?? JSONObject()
        guard let name = membership["host"]?.string, self.text(of: "ca.pem") == backup["ca.pem"]?.string else {
            throw .failed("this host has another team", try: "patchbay team leave, then import again")
        }
        for name in Self.authorityFiles { try write(backup[name], to: name) }
        let previous = membership["authority"]?.string ?? host
        membership["authority"] = .string(name)
        membership["authorityAddresses"] = .array([])
        document["content"] = .object(membership)
        try write(.string(JSON.object(document).text), to: Self.membership)
        return name == host ? .restored(host: host, team: team) : .takenOver(host: name, from: previous)
    }

    /// The membership in a backup.
    private static func content(of backup: JSONObject) -> JSONObject? {
        guard let text = backup[membership]?.string, let file = try? JSON(parsing: text) else { return nil }
        return file["content"]?.object
    }

    private func text(of name: String) -> String? { try? String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8) }

    private func makeFolder() throws(CLIError) {
        guard mkdir(folder, 0o700) != 0, errno != EEXIST else { return giveToBroker(folder) }
        throw unwritable(SocketError.message(for: errno))
    }

    private func write(_ content: JSON?, to name: String) throws(CLIError) {
        guard let text = content?.string else { return }
        let path = "\(folder)/\(name)"
        do { try AtomicFile.replace(path, with: Data(text.utf8)) } catch { throw unwritable("\(error)") }
        giveToBroker(path)
    }

    /// Gives a file to the owner of the state folder, because the broker runs as that user.
    private func giveToBroker(_ path: String) {
        guard geteuid() == 0, let owner = FileStatus(atPath: state) else { return }
        // The folder belongs to the broker, which may have put a link here meanwhile.
        _ = lchown(path, owner.owner, owner.group)
    }

    private func unwritable(_ reason: String) -> CLIError {
        .failed("\(folder) cannot be written: \(reason)", try: "run the command with sudo, or name --state-directory")
    }
}
