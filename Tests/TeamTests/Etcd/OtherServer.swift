import TestSupport

/// A server of HTTP/2 over TLS that is no etcd, such as a proxy.
struct OtherServer {
    /// The URL for clients.
    let endpoint: String
    private let program: Program

    /// The program. Its arguments are the port, the certificate, the key, and the status of each response, or `none`.
    private static let script = #"""
        import socket, ssl, struct, sys, threading

        SETTINGS, HEADERS = 4, 1
        END_STREAM, END_HEADERS = 1, 4
        status = sys.argv[4].encode()

        def frame(kind, flags, stream, payload=b""):
            return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        context.set_alpn_protocols(["h2"])

        def serve(client):
            connection = context.wrap_socket(client, server_side=True)
            reader = connection.makefile("rb")
            reader.read(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
            connection.sendall(frame(SETTINGS, 0, 0))
            while head := reader.read(9):
                kind, stream = head[3], int.from_bytes(head[5:], "big")
                reader.read(int.from_bytes(head[:3], "big"))
                if kind == HEADERS:
                    print("request", flush=True)
                    if status != b"none":
                        # The name is entry 8 of HPACK's static table: ":status".
                        response = b"\x08" + bytes([len(status)]) + status
                        connection.sendall(frame(HEADERS, END_STREAM | END_HEADERS, stream, response))

        server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
        print("ready", flush=True)
        while True:
            threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
        """#

    /// Starts the server. Returns when it accepts connections.
    ///
    /// - Parameters:
    ///   - status: The HTTP status of each response; nil to answer no request.
    ///   - certificates: The authority of the server's certificate.
    ///   - scratch: The folder of the test.
    /// - Throws: `TestSupportError`.
    init(answering status: String?, _ certificates: EtcdCertificates, in scratch: ScratchFolder) async throws {
        let server = try await certificates.issue("other", addresses: ["127.0.0.1"])
        let port = try FreePorts.take()[0]
        program = try await Program(
            "python3",
            ["-c", Self.script, "\(port)", server.certificatePath, server.keyPath, status ?? "none"],
            in: scratch
        )
        try await program.waitForLine("ready")
        endpoint = "https://127.0.0.1:\(port)"
    }

    /// The number of requests so far.
    var requests: Int { program.output.count(where: { $0 == "request" }) }

    /// Waits until the server has received a request.
    func waitForRequest() async throws { try await program.waitForLine("request") }
}
