import TestSupport

/// A machine with a real OpenSSH server, in a namespace of its own with its own users, keys and `/run`.
///
/// The commands of the tests run there too: `ssh://box` leads from root to root, `ssh://annie@box` to another user.
final class SSHMachine {
    /// The user `annie`, who exists in the namespace only.
    static let annie = 4_711
    static let port = 2_222

    private let scratch: ScratchFolder
    private let namespace: NetworkNamespace
    /// The server's log goes to its standard error.
    let server: Program

    private static let setup = """
        mkdir -p /run/sshd /run/patchbay /run/ssh /run/home/root/.ssh /run/home/annie /run/user/\(annie)/patchbay
        chown -R \(annie):\(annie) /run/home/annie /run/user/\(annie)
        ssh-keygen -q -t ed25519 -N '' -f /run/ssh/host
        ssh-keygen -q -t ed25519 -N '' -f /run/home/root/.ssh/id_ed25519
        cp /run/home/root/.ssh/id_ed25519.pub /run/ssh/authorized_keys
        echo "[127.0.0.1]:\(port) $(cut -d' ' -f1,2 /run/ssh/host.pub)" > /run/home/root/.ssh/known_hosts
        sed 's|^root:.*|root:x:0:0:root:/run/home/root:/bin/sh|' /etc/passwd > /run/ssh/passwd
        echo 'annie:x:\(annie):\(annie)::/run/home/annie:/bin/sh' >> /run/ssh/passwd
        printf 'root:*:19000:0:99999:7:::\\nannie:*:19000:0:99999:7:::\\n' > /run/ssh/shadow
        mount --bind /run/ssh/passwd /etc/passwd
        mount --bind /run/ssh/shadow /etc/shadow
        cat > /run/home/root/.ssh/config <<END
        Host box keyless shared
          HostName 127.0.0.1
          Port \(port)
          BatchMode yes
        Host keyless
          IdentityFile /run/ssh/none
          IdentitiesOnly yes
        Host shared
          ControlMaster auto
          ControlPath /run/home/root/.ssh/control-%C
        Host *
          LocalForward 127.0.0.1:\(port) 127.0.0.1:1
          RemoteCommand false
        END
        cat > /run/ssh/sshd_config <<END
        ListenAddress 127.0.0.1:\(port)
        HostKey /run/ssh/host
        AuthorizedKeysFile /run/ssh/authorized_keys
        StrictModes no
        UsePAM no
        PasswordAuthentication no
        KbdInteractiveAuthentication no
        PidFile none
        LogLevel VERBOSE
        END
        """

    init(in scratch: ScratchFolder) async throws {
        self.scratch = scratch
        namespace = try await NetworkNamespace(in: scratch)
        try await namespace.run("sh", ["-ec", Self.setup])
        server = try await Program(
            Executable.find("sshd"),
            ["-D", "-e", "-f", "/run/ssh/sshd_config"],
            in: scratch,
            namespace: namespace
        )
        try await server.waitForLine("Server listening on 127.0.0.1")
    }

    /// The number of successful logins at the server.
    var logins: Int { server.transcript.soFar.count { $0.text.contains("Accepted publickey") } }

    /// Starts a broker as a user and returns when its API is open.
    @discardableResult
    func startBroker(as user: Int = 0, socket: String = "/run/patchbay/patchbay.sock") async throws -> Program {
        let state = "/run/ssh/state-\(user)"
        try await namespace.run("install", ["-d", "-m", "700", "-o", "\(user)", state])
        let identity = ["--reuid", "\(user)", "--regid", "\(user)", "--clear-groups", "--"]
        let broker = try await Program(
            "setpriv",
            identity + [try Executable.built("patchbayd"), "--state-directory", state],
            in: scratch,
            environment: [
                "PATCHBAY_SOCKET": socket, "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/run/ssh/no-bus",
                "USBMUXD_SOCKET_ADDRESS": "/run/ssh/no-usbmuxd", "HOME": "/run/home/annie",
            ],
            namespace: namespace
        )
        try await broker.waitForLine("the API is open")
        return broker
    }

    /// Starts `patchbay` with this broker; its own machine has no broker at the default places.
    func start(_ broker: String, _ arguments: String..., input: Program.Input = .nothing) async throws -> Program {
        try await Program(
            Executable.built("patchbay"),
            arguments,
            in: scratch,
            environment: ["PATCHBAY_BROKER": broker, "HOME": "/run/home/root"],
            input: input,
            namespace: namespace
        )
    }

    /// Runs `patchbay` until it succeeds.
    ///
    /// - Returns: The lines of its standard output.
    func ask(_ broker: String, _ arguments: String...) async throws -> [String] {
        try await Program.run(
            Executable.built("patchbay"),
            arguments,
            in: scratch,
            environment: ["PATCHBAY_BROKER": broker, "HOME": "/run/home/root"],
            namespace: namespace
        )
    }

    @discardableResult
    func run(_ command: String, _ arguments: String...) async throws -> [String] {
        try await namespace.run(command, arguments)
    }

    /// Starts the sample app there and returns its port.
    func startApp() async throws -> String {
        let app = try await Program(
            "python3",
            ["\(TestSupportFolder.sources)/sampleapp.py", "--bundle", "com.example.shop", "--mode", "ios-0.9"],
            in: scratch,
            namespace: namespace
        )
        let line = try await app.waitForLine("listening on ")
        return String(line.dropFirst("listening on ".count))
    }

    /// The process IDs of the processes that a program started, in this order.
    func children(of program: Program) async throws -> [Int32] {
        // `Program` starts `nsenter`, which becomes the program itself with the same process ID.
        let lines = try await Program.run("ps", ["-o", "pid=", "--ppid", "\(program.processID)"], in: scratch)
        return lines.compactMap { Int32($0.filter { $0 != " " }) }.sorted()
    }
}
