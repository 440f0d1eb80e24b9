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
        abstract: "Create the certificates and options of an etcd node, in a folder of its own.",
        discussion: """
            Runs on the host with the certificate authority. Writes NAME.pem, NAME-peer.pem, NAME-key.pem, ca.pem, and the \
            options etcd.env for the etcd service of Debian and Ubuntu to FOLDER/NAME. Then prints the commands that \
            install etcd with them. An existing key is kept, so the command also renews a certificate.

              patchbay team certificate etcd1 10.0.0.5 --out certs
              patchbay team certificate etcd2 10.0.0.6 --out certs --node etcd1=10.0.0.5
            """
    )

    @Argument(help: ArgumentHelp("The name of the node, for its files.", valueName: "name"))
    var name: HostName
    @Argument(help: ArgumentHelp("The names and addresses at which others reach the node.", valueName: "address"))
    var addresses: [String]
    @Option(help: ArgumentHelp("Write the node's folder to this one.", valueName: "folder"))
    var out: String
    @Option(
        help: ArgumentHelp("Name another node of the cluster; repeat it.", valueName: "name=address"),
        transform: EtcdNode.init(argument:)
    )
    var node: [EtcdNode] = []
    @Flag(help: "Add the node to a cluster that runs, instead of a new one.")
    var existing = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard Set(node.map(\.name) + [name]).count == node.count + 1 else {
            throw ValidationError("Each node has another name.")
        }
        guard !existing || !node.isEmpty else {
            throw ValidationError("--existing needs --node with the nodes that run.")
        }
    }

    func run() async throws {
        guard let address = addresses.first else { return }
        let client = try options.client.team
        let servers = try await client.status().etcd.map(\.url)
        let own = EtcdNode(name: name, address: address, clientPort: EtcdNode.port(of: addresses, among: servers))
        let files = EtcdNodeFiles(folder: "\(out)/\(name)", name: name.text)
        let key = try files.loadKey()
        let request: String
        do { request = try key.signingRequest() } catch { throw CLIError(ofKey: error) }
        let certificate = try await client.issue(
            TeamCertificateSpec(request: request, addresses: addresses)
        )
        try files.makeFolder()
        // The file of an existing key keeps its owner.
        if !FileManager.default.fileExists(atPath: files.keyPath) { try files.write(key.pem, to: files.keyPath) }
        try files.write(certificate.certificate, to: files.certificatePath)
        try files.write(certificate.peerCertificate, to: files.peerCertificatePath)
        try files.write(certificate.authority, to: files.authorityPath)
        try files.write(own.environment(others: node, isNew: !existing), to: files.environmentPath)
        for line in own.installation(from: files.folder, isHere: own.isOnThisMachine) { try options.output.line(line) }
    }
}

/// A node of etcd, as its command line and its service name it.
struct EtcdNode: Hashable {
    let name: HostName
    /// The host name or numeric address for clients and for the other nodes.
    let address: String
    /// The port for clients, which `patchbay team init --etcd` names.
    let clientPort: Int

    /// The folder of the files on the machine of the node.
    static let folder = "/etc/etcd-patchbay"

    init(name: HostName, address: String, clientPort: Int = 2_379) {
        (self.name, self.address, self.clientPort) = (name, address, clientPort)
    }

    /// Returns the port of the first of the team's servers at one of the addresses; 2379 if there is none.
    static func port(of addresses: [String], among servers: [String]) -> Int {
        let urls = servers.compactMap { URL(string: $0) }
        let own = urls.first { url in
            addresses.contains { $0.lowercased() == url.host()?.lowercased().filter { !"[]".contains($0) } }
        }
        return own?.port ?? 2_379
    }

    /// Parses `NAME=ADDRESS`.
    ///
    /// - Throws: `ValidationError`.
    init(argument: String) throws {
        let parts = argument.split(separator: "=", maxSplits: 1).map(String.init)
        guard parts.count == 2, let name = HostName(parts[0]) else {
            throw ValidationError("Enter a node as NAME=ADDRESS, such as etcd1=10.0.0.5.")
        }
        self.init(name: name, address: parts[1])
    }

    private func url(_ port: Int) -> String { "https://\(address.contains(":") ? "[\(address)]" : address):\(port)" }

    /// True if the numeric address is one of this machine.
    var isOnThisMachine: Bool {
        guard let own = SocketAddress(numeric: address, port: 0), let listener = try? Listener(on: own) else {
            return false
        }
        listener.close()
        return true
    }

    /// The options of etcd as variables, for `/etc/default/etcd`.
    ///
    /// Without the allowed name, a host could connect as another node and write to the registry. A single node has the peer
    /// options, too, so that others can be added.
    func environment(others: [EtcdNode], isNew: Bool) -> String {
        let files = EtcdNodeFiles(folder: Self.folder, name: name.text)
        let any = address.contains(":") ? "[::]" : "0.0.0.0"
        let members = (others + [self]).sorted { $0.name < $1.name }
        let variables = [
            ("NAME", name.text), ("DATA_DIR", "/var/lib/etcd/patchbay"), ("AUTO_COMPACTION_RETENTION", "1h"),
            ("LISTEN_CLIENT_URLS", "https://\(any):\(clientPort)"), ("ADVERTISE_CLIENT_URLS", url(clientPort)),
            ("LISTEN_PEER_URLS", "https://\(any):2380"), ("INITIAL_ADVERTISE_PEER_URLS", url(2_380)),
            ("INITIAL_CLUSTER", members.map { "\($0.name)=\($0.url(2_380))" }.joined(separator: ",")),
            ("INITIAL_CLUSTER_STATE", isNew ? "new" : "existing"),
            ("CERT_FILE", files.certificatePath), ("KEY_FILE", files.keyPath), ("CLIENT_CERT_AUTH", "true"),
            ("TRUSTED_CA_FILE", files.authorityPath),
            ("PEER_CERT_FILE", files.peerCertificatePath), ("PEER_KEY_FILE", files.keyPath),
            ("PEER_CLIENT_CERT_AUTH", "true"), ("PEER_TRUSTED_CA_FILE", files.authorityPath),
            ("PEER_CERT_ALLOWED_CN", TeamCertificateSpec.peerName),
        ]
        return variables.map { "ETCD_\($0)=\"\($1)\"\n" }.joined()
    }

    /// The commands that install etcd on Debian or Ubuntu with the files of a folder, also again with new files.
    func installation(from folder: String, isHere: Bool) -> [String] {
        let run = isHere ? "sudo sh -c" : "ssh \("root@\(address)".shellQuoted)"
        let target = Self.folder
        return [
            "\(run) 'apt-get install -y etcd-server && install -d -m 700 \(target)'",
            "tar -C \(folder.shellQuoted) -c . | \(run) 'tar -C \(target) -x'",
            "\(run) 'chown -R etcd: \(target) && cp \(target)/etcd.env /etc/default/etcd && systemctl restart etcd'",
        ]
    }
}

/// The files of an etcd node, with mode 0600.
struct EtcdNodeFiles {
    let folder: String
    let name: String

    var certificatePath: String { "\(folder)/\(name).pem" }
    /// The certificate for the other nodes.
    var peerCertificatePath: String { "\(folder)/\(name)-peer.pem" }
    var keyPath: String { "\(folder)/\(name)-key.pem" }
    var authorityPath: String { "\(folder)/ca.pem" }
    /// The options of etcd.
    var environmentPath: String { "\(folder)/etcd.env" }

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
