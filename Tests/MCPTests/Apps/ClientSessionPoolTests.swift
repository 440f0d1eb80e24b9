import Model
import SystemIO
import Testing

@testable import MCP

@Suite struct ClientSessionPoolTests {
    private let rig = DeskRig(ScriptedApp.appReveal())

    private let shop: EndpointID

    init() throws { shop = try #require(EndpointID("shop")) }

    private func key(_ client: Int, at endpoint: EndpointID? = nil) -> ClientSessionPool.Key {
        ClientSessionPool.Key(endpoint: endpoint ?? shop, holder: "uid:0", client: "\(client)")
    }

    private func line() -> UpstreamSession { rig.desk.makeLine(to: shop) }

    @Test func `the same client has the same line, and nobody else has it`() throws {
        var lines = ClientSessionPool()
        let other = ClientSessionPool.Key(endpoint: shop, holder: "grant:x", client: "1")

        let first = try lines.enter(key(1), at: .zero) { line() }.line
        let again = try lines.enter(key(1), at: .zero) { line() }.line
        let others = try lines.enter(other, at: .zero) { line() }.line

        #expect(first === again)
        #expect(first !== others)
    }

    @Test func `clients that cannot be told apart have a line for each request that runs`() throws {
        var lines = ClientSessionPool()

        let first = try lines.enter(key(1), isShared: false, at: .zero) { line() }
        let beside = try lines.enter(key(1), isShared: false, at: .zero) { line() }
        lines.leave(first.key, first.line, at: .seconds(1))
        let after = try lines.enter(key(1), isShared: false, at: .seconds(2)) { line() }

        #expect(first.line !== beside.line)
        #expect(first.line === after.line)
        #expect(lines.count == 2)
    }

    @Test
    func `of one app's lines the one that nobody has used for longest makes room, and of those that are used none`()
        throws
    {
        var lines = ClientSessionPool()
        for client in 1...ClientSessionPool.limitOfOne {
            let own = try lines.enter(key(client), at: .seconds(client)) { line() }.line
            if client > 1 { lines.leave(key(client), own, at: .seconds(100 - client)) }
        }

        let retired = try lines.enter(key(99), at: .seconds(100)) { line() }.retired

        #expect(retired.count == 1)
        #expect(lines.count == ClientSessionPool.limitOfOne)
        #expect(try lines.enter(key(1), at: .seconds(100)) { line() }.retired.isEmpty)
        for client in 2..<ClientSessionPool.limitOfOne {
            _ = try lines.enter(key(client), at: .seconds(101)) { line() }
        }
        #expect(throws: Trouble.busy) {
            try lines.enter(key(ClientSessionPool.limitOfOne), at: .seconds(102)) { line() }
        }
    }

    @Test func `altogether there are no more than the limit`() throws {
        var lines = ClientSessionPool()
        for number in 1...ClientSessionPool.limit {
            let key = key(1, at: EndpointID("app-\(number)"))
            let own = try lines.enter(key, at: .seconds(number)) { line() }.line
            lines.leave(key, own, at: .seconds(number))
        }

        let retired = try lines.enter(key(1), at: .seconds(100)) { line() }.retired

        #expect(retired.map(\.0) == [EndpointID("app-1")])
        #expect(lines.count == ClientSessionPool.limit)
    }

    @Test func `what nobody uses for long is given up`() throws {
        var lines = ClientSessionPool()
        let idle = try lines.enter(key(1), at: .zero) { line() }.line
        lines.leave(key(1), idle, at: .seconds(1))
        _ = try lines.enter(key(2), at: .zero) { line() }

        #expect(lines.expire(at: .seconds(600)).isEmpty)
        #expect(lines.expire(at: .seconds(601)).count == 1)
        #expect(lines.count == 1)
    }
}
