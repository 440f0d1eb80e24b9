import ArgumentParser
import Client
import FoundationEssentials
import Glibc
import Model
import SystemIO
import Transport

struct TeamCertificateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "certificate",
        abstract: "Create the certificate files of an etcd node.",
        discussion: """
            Runs on the host with the certificate authority. Writes NAME.pem, NAME-peer.pem, NAME-key.pem and ca.pem \
            to a folder, and prints the options of etcd that use them. An existing key is kept, so the command also renews a \
            certificate. Copy the files to the node, where only etcd may read them.

              patchbay team certificate etcd1 10.0.0.5 --out etcd-certs
            """
    )

    @Argument(help: ArgumentHelp("The name of the node, for its files.", valueName: "name"))
    var name: HostName
    @Argument(help: ArgumentHelp("The names and addresses at which others reach the node.", valueName: "address"))
    var addresses: [String]
    @Option(help: ArgumentHelp("Write the files to this folder.", valueName: "folder"))
    var out: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let files = EtcdNodeFiles(folder: out, name: name.text)
        let key = try files.loadKey()
        let request: String
        do { request = try key.signingRequest() } catch { throw CLIError(ofKey: error) }
        let certificate = try await options.client.team.issue(
            TeamCertificateSpec(request: request, addresses: addresses)
        )
        try files.makeFolder()
        // The file of an existing key keeps its owner.
        if !FileManager.default.fileExists(atPath: files.keyPath) { try files.write(key.pem, to: files.keyPath) }
        try files.write(certificate.certificate, to: files.certificatePath)
        try files.write(certificate.peerCertificate, to: files.peerCertificatePath)
        try files.write(certificate.authority, to: files.authorityPath)
        for line in files.etcdOptions { try options.output.line(line) }
    }
}

/// The certificate files of an etcd node, with mode 0600.
struct EtcdNodeFiles {
    let folder: String
    let name: String

    var certificatePath: String { "\(folder)/\(name).pem" }
    /// The certificate for the other nodes.
    var peerCertificatePath: String { "\(folder)/\(name)-peer.pem" }
    var keyPath: String { "\(folder)/\(name)-key.pem" }
    var authorityPath: String { "\(folder)/ca.pem" }

    /// The options with which etcd uses the files for its clients and for the other nodes.
    ///
    /// Without the allowed name, a host could connect as another node and write to the registry.
    var etcdOptions: [String] {
        [
            "--cert-file=\(certificatePath)", "--key-file=\(keyPath)", "--client-cert-auth",
            "--trusted-ca-file=\(authorityPath)",
            "--peer-cert-file=\(peerCertificatePath)", "--peer-key-file=\(keyPath)", "--peer-client-cert-auth",
            "--peer-trusted-ca-file=\(authorityPath)", "--peer-cert-allowed-cn=\(TeamCertificateSpec.peerName)",
        ]
    }

    /// Loads the key; creates one, without its file, if there is none.
    ///
    /// - Throws: `CLIError`.
    func loadKey() throws(CLIError) -> CertificateKey {
        do {
            if let text = try? String(contentsOfFile: keyPath, encoding: .utf8) { return try CertificateKey(pem: text) }
            return try CertificateKey()
        } catch { throw Self.unwritable(keyPath, error) }
    }

    /// - Throws: `CLIError`.
    func makeFolder() throws(CLIError) {
        do {
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            let reason = SocketError.message(for: errno)
            let isFile = FileManager.default.fileExists(atPath: folder)
            throw CLIError.failed(
                SanitizedText(folder, limit: .max).text
                    + (isFile ? " is a file, not a folder" : " cannot be made: \(reason)"),
                try: "choose another folder with --out"
            )
        }
    }

    /// - Throws: `CLIError`.
    func write(_ pem: String, to path: String) throws(CLIError) {
        do { try AtomicFile.replace(path, with: Data(pem.utf8)) } catch { throw Self.unwritable(path, error) }
    }

    private static func unwritable(_ path: String, _ error: any Error) -> CLIError {
        CLIError.failed(
            "\(SanitizedText(path, limit: .max)) cannot be used: \(error)",
            try: "choose another folder with --out"
        )
    }
}
