import FoundationEssentials
import Glibc
import SystemIO

/// The unmodified adb server with simulated phones.
///
/// The server listens on a unix socket in the scratch folder, has a home folder of its own there, and opens no USB
/// device. A phone is a program on loopback, and an app on a phone is a TCP server on loopback.
package actor ADBFixture {
    package nonisolated let socketPath: String
    private let scratch: ScratchFolder
    private let environment: [String: String]
    private let descriptorLimit: Int?
    private var server: Program?
    /// The attached phones by their keys.
    private var phones: [String: (phone: AndroidPhone, port: UInt16, program: Program)] = [:]
    /// The port of each phone, which stays the same when it is attached again.
    private var ports: [String: UInt16] = [:]

    /// Starts the server with these phones, and returns when they are listed.
    ///
    /// The limit is the soft `ulimit -n` of the server, which it never raises.
    package init(
        _ phones: [AndroidPhone] = [],
        in scratch: ScratchFolder,
        socketPath: String? = nil,
        descriptorLimit: Int? = nil
    ) async throws {
        let folder = try scratch.makeFolder("adb-\(UInt16.random(in: 0 ... .max))")
        self.scratch = scratch
        self.descriptorLimit = descriptorLimit
        self.socketPath = socketPath ?? "\(folder)/adb"
        // No port is scanned for emulators; the fixture announces each phone.
        environment = ["HOME": folder, "ADB_USB": "0", "ADB_EMU": "1", "ADB_LOCAL_TRANSPORT_MAX_PORT": "1"]
        try await start()
        for phone in phones { try await attach(phone) }
    }

    /// The environment that makes an adb client use this server.
    package nonisolated var clientEnvironment: [String: String] {
        ["ADB_SERVER_SOCKET": "localfilesystem:\(socketPath)"]
    }

    /// The serial under which the server lists a phone.
    package func listedSerial(of serial: String) -> String {
        guard let port = ports[serial] else { return "" }
        return phones[serial]?.phone.attachment == .tcp ? "127.0.0.1:\(port)" : "emulator-\(port - 1)"
    }

    /// Attaches a phone, and returns when the server lists it as ready. Does not wait for a hostile phone.
    ///
    /// - Parameters:
    ///   - phone: The phone.
    ///   - other: The serial of an earlier phone whose port it takes, and with TCP its transport.
    /// - Throws: `TestSupportError` if the server does not list it.
    package func attach(_ phone: AndroidPhone, inPlaceOf other: String? = nil) async throws {
        guard phones[phone.key] == nil else { throw TestSupportError("phone \(phone.key) is attached already") }
        let port = try other.flatMap { ports[$0] } ?? ports[phone.key] ?? FreePorts.take()[0]
        try await start(phone, at: port)
        if server != nil { try await announce(phone, at: port) }
    }

    /// Lets another phone take the place of a phone over TCP, so quickly that it gets the same transport.
    ///
    /// - Throws: `TestSupportError` if the server does not list it.
    package func replace(_ serial: String, by phone: AndroidPhone) async throws {
        guard let (_, port, program) = phones.removeValue(forKey: serial) else {
            throw TestSupportError("phone \(serial) is not attached")
        }
        program.kill()
        _ = try await program.exitStatus()
        try await start(phone, at: port)
        // The server connects again by itself: after 250 ms, and then every 10 s.
        try await waitForState(of: listedSerial(of: phone.key)) { $0 == "device" }
    }

    /// Detaches a phone, and returns when the server lists it no more, or as offline.
    package func detach(_ serial: String) async throws {
        guard let (_, _, program) = phones[serial] else { throw TestSupportError("phone \(serial) is not attached") }
        let listed = listedSerial(of: serial)
        program.kill()
        _ = try await program.exitStatus()
        phones[serial] = nil
        guard server != nil else { return }
        try await waitForState(of: listed) { $0 != "device" }
    }

    /// Stops a phone's program with SIGSTOP: the server lists the phone, which answers nothing.
    package func freeze(_ serial: String) { phones[serial]?.program.freeze() }

    /// The output of a phone's program, which tells of each `logcat` that goes on.
    package func output(of serial: String) -> String { phones[serial]?.program.log ?? "" }

    package func thaw(_ serial: String) { phones[serial]?.program.thaw() }

    /// Starts the server; returns when it lists the attached phones.
    package func start() async throws {
        let server = try await Program(
            "adb",
            ["-L", "localfilesystem:\(socketPath)", "server", "nodaemon"],
            in: scratch,
            environment: environment,
            descriptorLimit: descriptorLimit
        )
        self.server = server
        try await waitForAnswer(of: server)
        for (phone, port, _) in phones.values { try await announce(phone, at: port) }
    }

    /// Kills the server with SIGKILL; the phones stay attached and the stale socket file remains.
    package func kill() async throws {
        server?.kill()
        _ = try await server?.exitStatus()
        server = nil
    }

    package func restart() async throws {
        try await kill()
        try await start()
    }

    /// The number of open descriptors of the server.
    package func descriptors() throws -> Int {
        guard let server else { return 0 }
        return try FileManager.default.contentsOfDirectory(atPath: "/proc/\(server.processID)/fd").count
    }

    /// Sends a request to the server and returns the text of the answer, without its length.
    ///
    /// - Throws: `TestSupportError` if the server refuses the request.
    @discardableResult
    package nonisolated func request(_ service: String) async throws -> String {
        // The tunnels under test may fill the accept queue.
        let stream: SocketStream = try await eventually("the accept queue of adb has room") {
            do { return try await .connect(to: .unix(path: socketPath)) } catch SocketError.failed(_, _, EAGAIN) {
                return nil
            }
        }
        let length = String(service.utf8.count, radix: 16)
        try await stream.send(Array((String(repeating: "0", count: 4 - length.count) + length + service).utf8))
        let answer = String(decoding: try await stream.receiveToEnd(), as: UTF8.self)
        // The server closes the connection of `host:emulator` without an answer.
        guard answer.hasPrefix("OKAY") || answer.isEmpty else {
            throw TestSupportError("adb answered \(service) with \(answer)")
        }
        return String(answer.dropFirst(8))
    }

    private func start(_ phone: AndroidPhone, at port: UInt16) async throws {
        let script = "\(TestSupportFolder.sources)/adb/phone.py"
        let program = try await Program("python3", ["-u", script] + phone.arguments(port: port), in: scratch)
        try await program.waitForLine("listening")
        (ports[phone.key], phones[phone.key]) = (port, (phone, port, program))
    }

    private func announce(_ phone: AndroidPhone, at port: UInt16) async throws {
        let state = phone.isAuthorized ? "device" : "unauthorized"
        let listed = listedSerial(of: phone.key)
        switch phone.attachment {
        case .emulator:
            try await request("host:emulator:\(port)")
            guard phone.hostility == nil else { return }
        case .tcp:
            // The server tries again only every 10 s by itself.
            _ = try? await request("host:disconnect:127.0.0.1:\(port)")
            try await connect(to: port)
        }
        try await waitForState(of: listed) { $0 == state }
    }

    private nonisolated func connect(to port: UInt16) async throws {
        // The answer is "already connected" until the server has removed the old transport.
        try await eventually("adb connects to port \(port)") {
            try await request("host:connect:127.0.0.1:\(port)").hasPrefix("connected")
        }
    }

    private nonisolated func waitForAnswer(of server: Program) async throws {
        try await eventually("the adb server answers\n\(server.log)") {
            (try? await request("host:version"))?.isEmpty == false
        }
    }

    private nonisolated func waitForState(of listed: String, _ isWanted: (String?) -> Bool) async throws {
        try await eventually("\(listed) has the wanted state") {
            let lines = try await request("host:devices").split(separator: "\n")
            let line = lines.first { $0.hasPrefix("\(listed)\t") }
            return isWanted(line.map { String($0.dropFirst(listed.count + 1)) })
        }
    }
}
