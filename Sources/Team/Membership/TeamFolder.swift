import FoundationEssentials
import Glibc
import Model
import SystemIO
import Transport

/// The folder `team` in the state directory, with mode 0700. All of its files are private.
package struct TeamFolder: Sendable {
    let path: String

    package init(in stateDirectory: String) { path = "\(stateDirectory)/team" }

    var authority: CertificateAuthorityFiles { CertificateAuthorityFiles(in: path) }
    var identity: MemberIdentityFile { MemberIdentityFile(in: path) }
    var etcd: EtcdFiles { EtcdFiles(in: path) }

    /// Creates the folder.
    ///
    /// - Throws: `Problem`.
    func prepare() throws {
        guard mkdir(path, 0o700) != 0, errno != EEXIST else { return }
        throw Problem(
            .unavailable,
            "the folder \(path) cannot be made: \(SocketError.message(for: errno))",
            hint: "patchbay doctor"
        )
    }

    /// Deletes the folder with all of its files. Tries three times, because the running team may replace a file meanwhile.
    ///
    /// - Throws: `Problem`.
    func delete() throws {
        for _ in 1..<3 where access(path, F_OK) == 0 { try? FileManager.default.removeItem(atPath: path) }
        guard access(path, F_OK) == 0 else { return }
        do { try FileManager.default.removeItem(atPath: path) } catch {
            throw Problem(
                .unavailable,
                "the folder \(path) cannot be deleted: \(SocketError.message(for: errno))",
                hint: "stop the broker, delete the folder and start the broker"
            )
        }
    }
}
