import Logging
import NIOCore
@testable import Team
import TestSupport
import Testing

/// The HTTP/2 connection to a server that is no etcd.
@Suite(.timeLimit(.minutes(1)), .scratchFolder) struct EtcdConnectionTests {
    private let scratch = ScratchFolder.current

    /// A server of HTTP/2 over TLS for one connection. It sends 1000 PINGs before each answer, an empty message.
    ///
    /// The arguments are the port, the certificate and the key.
    private static let server = #"""
        import socket, ssl, struct, sys

        SETTINGS, PING, HEADERS, DATA = 4, 6, 1, 0
        END_STREAM, END_HEADERS = 1, 4

        def frame(kind, flags, stream, payload=b""):
            return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

        def literal(name, value):
            return bytes([0, len(name)]) + name + bytes([len(value)]) + value

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        context.set_alpn_protocols(["h2"])
        server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
        print("ready", flush=True)
        connection = context.wrap_socket(server.accept()[0], server_side=True)
        reader = connection.makefile("rb")
        reader.read(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
        connection.sendall(frame(SETTINGS, 0, 0))
        while head := reader.read(9):
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            reader.read(int.from_bytes(head[:3], "big"))
            if kind == DATA and flags & END_STREAM:
                status = b"\x88" + literal(b"content-type", b"application/grpc")
                connection.sendall(
                    frame(PING, 0, 0, bytes(8)) * 1000
                    + frame(HEADERS, END_HEADERS, stream, status)
                    + frame(DATA, 0, stream, bytes(5))
                    + frame(HEADERS, END_HEADERS | END_STREAM, stream, literal(b"grpc-status", b"0"))
                )
        """#

    @Test(.needs(.openssl, .python)) func `a server may send 1000 PINGs with each answer`() async throws {
        let certificates = try await EtcdCertificates(in: scratch)
        let etcd = try await certificates.issue("etcd1", addresses: ["127.0.0.1"])
        let port = try FreePorts.take()[0]
        let program = try await Program(
            "python3",
            ["-c", Self.server, "\(port)", etcd.certificatePath, etcd.keyPath],
            in: scratch
        )
        try await program.waitForLine("ready")
        let store = EtcdStore(try await client(of: "https://127.0.0.1:\(port)", certificates))
        for _ in 0..<3 { #expect(try await store.list("/").entries.isEmpty) }
    }

    private func client(of server: String, _ certificates: EtcdCertificates) async throws -> EtcdClient {
        let host = try await certificates.issue("lab1")
        let configuration = try EtcdConfiguration(
            endpoints: [#require(EtcdEndpoint(server))],
            authority: certificates.authority,
            certificate: host.certificate,
            key: host.key
        )
        return EtcdClient(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    @Test(.needs(.openssl)) func `the error of a call names every server that does not answer`() async throws {
        let certificates = try await EtcdCertificates(in: scratch)
        let host = try await certificates.issue("lab1")
        let ports = try FreePorts.take(3)
        let configuration = try EtcdConfiguration(
            endpoints: ports.map { EtcdEndpoint(host: "127.0.0.1", port: $0) },
            authority: certificates.authority,
            certificate: host.certificate,
            key: host.key
        )
        let client = EtcdClient(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })

        let error = await #expect(throws: TeamStoreError.self) { try await EtcdStore(client).list("/") }

        guard case .unreachable(let reason)? = error else { throw TestSupportError("\(error as Any)") }
        for port in ports { #expect(reason.contains("https://127.0.0.1:\(port): Connection refused"), "\(reason)") }
        #expect(reason.matches(of: /Connection refused/).count == 3)
    }

    @Test(.needs(.openssl, .python)) func `a call that is cancelled while it waits for the answer ends at once`()
        async throws
    {
        let certificates = try await EtcdCertificates(in: scratch)
        let server = try await OtherServer(answering: nil, certificates, in: scratch)
        let client = try await client(of: server.endpoint, certificates)
        let connection = try await client.connection(to: client.currentEndpoint).get()
        // The limit of the attempt is longer than that of the test.
        let call = Task { try await connection.call("/etcdserverpb.KV/Range", [], limit: .hours(1)) }
        try await server.waitForRequest()

        call.cancel()

        await #expect(throws: CancellationError.self) { try await call.value }
    }

    @Test(.needs(.openssl, .python)) func `a cancelled call of the store has no second attempt, and says why`()
        async throws
    {
        let certificates = try await EtcdCertificates(in: scratch)
        let server = try await OtherServer(answering: nil, certificates, in: scratch)
        let store = EtcdStore(try await client(of: server.endpoint, certificates))
        let call = Task { try await store.list("/") }
        try await server.waitForRequest()

        call.cancel()

        await #expect(throws: TeamStoreError.unreachable(reason: "the call was cancelled")) { try await call.value }
        #expect(server.requests == 1)
    }
}
