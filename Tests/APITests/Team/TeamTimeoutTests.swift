import AccessControl
import Apps
import Client
import FoundationEssentials
import Model
import Registry
import Samples
import Synchronization
import Testing

@testable import API
@testable import Team

/// The time limits of requests to the brokers of other hosts.
@Suite struct TeamTimeoutTests {
    /// A host that never answers. Each request ends after its time limit, without a wait.
    private final class SilentHost: HostConnector {
        private let sent = Mutex<[Duration]>([])

        /// The time limits of all requests.
        var timeouts: [Duration] { sent.withLock { $0 } }

        func send(
            _ request: OutgoingRequest,
            to host: HostName,
            within timeout: Duration
        ) async throws -> any HostResponse {
            sent.withLock { $0.append(timeout) }
            throw HostError.silent(host, seconds: Int(timeout.components.seconds))
        }
    }

    /// A broker without apps of its own.
    private struct NoApps: AppCaller {
        func tools(of endpoint: Endpoint, for principal: Principal) async throws(AppError) -> AppToolList {
            throw .notMCP
        }
        func call(_ call: ToolCall, of principal: Principal) async throws(AppError) -> JSONObject { throw .notMCP }
        func disconnect(_ id: EndpointID) async {}
        func toolCount(of endpoint: Endpoint) async -> Int? { nil }
        func accepts(_ secret: EndpointSecret, at endpoint: Endpoint, for principal: Principal) async -> Bool? { nil }
        func requiresNoSecret(_ endpoint: Endpoint, for principal: Principal) async -> Bool { false }
        func isOpen(_ endpoint: Endpoint, for principal: Principal) async -> Bool? { nil }
        func wantsSecret(_ endpoint: Endpoint) -> Bool { false }
        func requiresSecret(_ endpoint: Endpoint) -> Bool { false }
        func describingDeviations(_ endpoints: [Endpoint]) -> [Endpoint] { endpoints }
    }

    private let lab2: HostName
    private let shop: Endpoint
    private let host = SilentHost()
    private let proxy: TeamProxy
    private let apps: TeamAppCaller

    init() throws {
        lab2 = HostName("lab2")
        shop = Endpoint.sample("shop.lab2", kind: .mcp)
        proxy = TeamProxy(host)
        apps = TeamAppCaller(NoApps(), proxy: proxy)
    }

    @Test func `a call ends soon after its own timeout, and the error names the host and the next step`() async throws {
        let call = ToolCall("tap", of: shop, wait: .seconds(60), timeout: .seconds(7))

        let error = await #expect(throws: AppError.self) { _ = try await apps.call(call, of: .broker) }

        #expect(host.timeouts == [.seconds(12)])
        let message = try #require(error?.message(for: .brokerAgent, at: shop.id))
        #expect(message.contains("shop.lab2 has not answered within 12 s"))
        #expect(message.contains("`systemctl status patchbayd` on lab2"))
        #expect(error?.isDelivered == true)
    }

    @Test func `only a request that the other broker may have executed has an unknown result`() {
        #expect(HostError.silent(lab2, seconds: 9).unknownResult?.isDelivered == true)
        #expect(HostError.responseLost(lab2).unknownResult?.isDelivered == true)
        #expect(HostError.wentOffline(lab2).unknownResult?.isDelivered == true)
        #expect(HostError.absent(lab2).unknownResult == nil)
        #expect(HostError.unreachable(lab2, reason: "no route").unknownResult == nil)
    }

    @Test func `a call without a timeout ends after the longest time of the other broker`() async {
        await #expect(throws: AppError.self) {
            _ = try await apps.call(ToolCall("tap", of: shop, wait: .seconds(30)), of: .broker)
        }

        #expect(host.timeouts == [.seconds(30 + 120 + 5)])
    }

    @Test(arguments: [
        (#"{"tool": "tap", "timeoutSeconds": 7, "waitSeconds": 60}"#, 12), (#"{"tool": "tap", "waitSeconds": 0}"#, 125),
        ("{}", 135),
    ])
    func `a forwarded call has the time limit of its body`(body: String, seconds: Int) {
        #expect(TeamProxy.timeout(of: .call, Array(body.utf8)) == .seconds(seconds))
    }

    @Test func `a message to an MCP server may be a call, and a list is none`() {
        #expect(TeamProxy.timeout(of: .mcp, []) == .seconds(135))
        #expect(TeamProxy.timeout(of: .tools, []) == TeamProxy.standardTimeout)
    }

    @Test func `other requests have one time limit, and that for a lease waits in addition`() async throws {
        let leases = TeamLeases(LeaseService(), on: ListedHosts(own: "lab1"), proxy: proxy)

        await #expect(throws: AppError.self) { _ = try await apps.tools(of: shop, for: .broker) }
        await #expect(throws: HostError.self) { try await leases.end("l1.lab2", among: [], by: .broker) }
        for wait in [0, 60] {
            await #expect(throws: HostError.self) {
                _ = try await leases.take(
                    shop,
                    for: .broker,
                    seconds: 60,
                    wait: .seconds(wait),
                    note: nil,
                    renewing: nil
                )
            }
        }

        #expect(host.timeouts == [.seconds(20), .seconds(20), .seconds(20), .seconds(80)])
    }
}
