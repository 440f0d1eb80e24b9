import AccessControl
import Model
import NIOCore
import NIOHTTP1
import NIOPosix
import SystemIO
import Transport

/// Fetches the metadata document of a client over https (draft-ietf-oauth-client-id-metadata-document, section 4).
///
/// A stranger chooses the address. So the host is looked up once, each of its addresses must be public, and the connection
/// goes to an address that was checked. No redirect is followed, no proxy is used, and the answer is small and quick.
struct ClientMetadataFetcher: Sendable {
    private typealias Stream = NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>

    /// Maximum size of a document in bytes. The draft recommends 5 kB.
    static let maxSize = 16 * 1_024
    /// The time for everything.
    var timeout: Duration = .seconds(5)
    var lookUp: @Sendable (String) async throws -> [SystemIO.SocketAddress] = {
        try await SystemIO.SocketAddress.addresses(of: $0, port: 443)
    }
    /// The address to dial in the place of one that was checked. Only tests change it.
    var dialed: @Sendable (SystemIO.SocketAddress) -> SystemIO.SocketAddress = { $0 }
    /// Returns what adds TLS for a host to a channel.
    var security: @Sendable () throws -> @Sendable (any Channel, String) throws -> Void = {
        let security = try PublicTLS()
        return { try security.secure($0, host: $1) }
    }

    /// - Throws: `OAuthError`; `CancellationError`.
    @Sendable func fetch(_ url: ClientMetadataURL) async throws -> [UInt8] {
        do {
            let body = try await withTimeout(timeout, clock: PollerClock()) {
                try await read(url, from: try await target(of: url))
            }
            guard let body else { throw Self.refusal(url, "did not arrive in time") }
            return body
        } catch let error as OAuthError {
            throw error
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            throw Self.refusal(url, "cannot be fetched")
        }
    }

    private func target(of url: ClientMetadataURL) async throws -> SystemIO.SocketAddress {
        let found = try await lookUp(url.host)
        guard let first = found.first, found.allSatisfy(\.isPublic) else {
            throw Self.refusal(url, "is not at a public address")
        }
        return first
    }

    private func read(_ url: ClientMetadataURL, from checked: SystemIO.SocketAddress) async throws -> [UInt8] {
        let (dialed, secure, timeout) = (dialed(checked), try security(), TimeAmount(timeout))
        let stream = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(timeout)
            .connect(to: try NIOCore.SocketAddress(ipAddress: dialed.host, port: Int(dialed.port ?? 443))) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHTTPClientHandlers()
                    let stream = try Stream(wrappingChannelSynchronously: channel)
                    try secure(channel, url.host)
                    return stream
                }
            }
        return try await stream.executeThenClose { inbound, outbound in
            var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: url.path)
            head.headers = ["Host": url.host, "Accept": "application/json", "Connection": "close"]
            try await outbound.write(contentsOf: [.head(head), .end(nil)])
            var body: [UInt8] = []
            for try await part in inbound {
                switch part {
                case .head(let head): try Self.check(head, url)
                case .body(let bytes): body += bytes.readableBytesView
                case .end: return body
                }
                guard body.count <= Self.maxSize else { throw Self.refusal(url, "has more than \(Self.maxSize) bytes") }
            }
            throw Self.refusal(url, "ends too early")
        }
    }

    private static func check(_ head: HTTPResponseHead, _ url: ClientMetadataURL) throws(OAuthError) {
        guard head.status == .ok else { throw refusal(url, "has status \(head.status.code), and not 200") }
        let media = head.headers.first(name: "Content-Type")?.split(separator: ";").first
        let type = media?.filter { $0 != " " }.lowercased()
        guard type == "application/json" || type?.hasSuffix("+json") ?? false else {
            throw refusal(url, "is not application/json")
        }
    }

    private static func refusal(_ url: ClientMetadataURL, _ reason: String) -> OAuthError {
        OAuthError(.invalidClient, "the metadata document of the client at \(url.host) \(reason)")
    }
}
