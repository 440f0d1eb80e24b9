import Model
import NIOCore
import NIOHTTP1
import Synchronization
import Testing
import Transport

@testable import Client

/// Brokers on other machines, with TLS that is replaced by a script.
@Suite struct RemoteBrokerTests {
    /// Records the pins, and lets every byte pass in the clear, or fails like TLS at the first event of the channel.
    private final class ScriptedSecurity: ClientTransportSecurity {
        private let failure: ClientFailure?
        private let seen = Mutex<[KeyPin]>([])

        var pins: [KeyPin] { seen.withLock { $0 } }

        init(failingWith failure: ClientFailure? = nil) { self.failure = failure }

        func secure(_ channel: any Channel, pin: KeyPin) throws {
            seen.withLock { $0.append(pin) }
            if let failure {
                try channel.pipeline.syncOperations.addHandler(FailingHandler(failure), position: .first)
            }
        }

        func failure(of error: any Error) -> ClientFailure? { (error as? ScriptedFailure)?.failure }
    }

    private struct ScriptedFailure: Error {
        let failure: ClientFailure
    }

    /// Holds back every write, and fires an error when the channel is active.
    private final class FailingHandler: ChannelDuplexHandler {
        typealias InboundIn = NIOAny
        typealias OutboundIn = NIOAny

        private let failure: ClientFailure

        init(_ failure: ClientFailure) { self.failure = failure }

        func channelActive(context: ChannelHandlerContext) {
            context.fireChannelActive()
            context.fireErrorCaught(ScriptedFailure(failure: failure))
            context.close(promise: nil)
        }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            promise?.fail(ScriptedFailure(failure: failure))
        }
    }

    private let pin: KeyPin

    init() throws { pin = try #require(KeyPin(digest: [UInt8](repeating: 1, count: 32))) }

    @Test func `each connection is secured with the pin, and has the address as its host`() async throws {
        try await ScriptedBroker.onLoopback(.pieces([ScriptedBroker.json(#"{"ended":["a"]}"#)])) { broker, port in
            let security = ScriptedSecurity()
            let address = BrokerAddress.remote(host: "127.0.0.1", port: port, pin: pin)

            for _ in 0..<2 { _ = try await PatchbayClient(address: address, security: security).revoke("self") }

            #expect(security.pins == [pin, pin])
            #expect(broker.requests.count == 2)
            #expect(broker.requests.first?.contains("\r\nHost: 127.0.0.1:\(port)\r\n") == true)
        }
    }

    @Test func `an address that does not answer in time is unreachable, and nothing was sent to it`() throws {
        let key = try #require(KeyPin(String(repeating: "A", count: 52)))
        let connection = HTTPConnection(
            address: .remote(host: "10.0.0.5", port: 7_284, pin: key),
            idleTimeout: .seconds(5)
        )
        let error = ChannelError.connectTimeout(.seconds(5))

        let failure = connection.failure(ofRemote: error, OutgoingRequest(method: .GET, path: []))

        #expect(failure == .unreachable(address: connection.address.description, reason: "no answer for 5 s"))
    }

    @Test(arguments: [
        (ClientFailure.otherKey, ClientError.otherKey(address: "")),
        (.keyRefused, .keyRefused(address: "")), (.closed, .connectionLost(what: "DELETE /v1/grants/self")),
        (.failed(reason: "x"), .tlsFailed(address: "", reason: "x")),
    ])
    func `a failure of TLS is reported, and nothing was sent`(
        failure: ClientFailure,
        expected: ClientError
    ) async throws {
        try await ScriptedBroker.onLoopback(.silence) { broker, port in
            let address = BrokerAddress.remote(host: "127.0.0.1", port: port, pin: pin)
            let client = PatchbayClient(address: address, security: ScriptedSecurity(failingWith: failure))

            let error = await #expect(throws: ClientError.self) { try await client.revoke("self") }

            let expected: ClientError =
                switch expected {
                case .otherKey: .otherKey(address: "\(address)")
                case .keyRefused: .keyRefused(address: "\(address)")
                case .tlsFailed(_, let reason): .tlsFailed(address: "\(address)", reason: reason)
                default: expected
                }
            #expect(error == expected)
            #expect(broker.requests.isEmpty)
        }
    }

    @Test func `an IPv6 address has brackets in messages and none in the address`() {
        let address = BrokerAddress.remote(host: "fe80::1%eth0", port: 7_283, pin: pin)

        #expect(address.description == "[fe80::1%eth0]:7283")
    }
}
