import Model
import Samples
import SystemIO
import Testing

@testable import Apps

@Suite struct ClientSessionPoolTests {
    private let fixture = AppProxyFixture(ScriptedApp.appReveal())

    private let shop = EndpointID("shop")

    private func key(_ client: Int, at endpoint: EndpointID? = nil) -> ClientSessionPool.Key {
        ClientSessionPool.Key(endpoint: endpoint ?? shop, holder: "uid:0", client: "\(client)")
    }

    private func newSession() -> UpstreamSession { fixture.proxy.pool.makeSession(to: shop) }

    @Test func `a client has its own session, which no other client gets`() throws {
        var pool = ClientSessionPool()
        let other = ClientSessionPool.Key(endpoint: shop, holder: "grant:x", client: "1")

        let first = try pool.checkOut(key(1), at: .zero) { newSession() }.session
        let again = try pool.checkOut(key(1), at: .zero) { newSession() }.session
        let others = try pool.checkOut(other, at: .zero) { newSession() }.session

        #expect(first === again)
        #expect(first !== others)
    }

    @Test func `indistinguishable clients have a session for each concurrent request`() throws {
        var pool = ClientSessionPool()

        let first = try pool.checkOut(key(1), isShared: false, at: .zero) { newSession() }
        let second = try pool.checkOut(key(1), isShared: false, at: .zero) { newSession() }
        pool.checkIn(first.key, first.session, at: .seconds(1))
        let after = try pool.checkOut(key(1), isShared: false, at: .seconds(2)) { newSession() }

        #expect(first.session !== second.session)
        #expect(first.session === after.session)
        #expect(pool.count == 2)
    }

    @Test func `the longest idle session of a holder is evicted, and a session in use is not`() throws {
        var pool = ClientSessionPool()
        for client in 1...ClientSessionPool.limitPerHolder {
            let session = try pool.checkOut(key(client), at: .seconds(client)) { newSession() }.session
            if client > 1 { pool.checkIn(key(client), session, at: .seconds(100 - client)) }
        }

        let evicted = try pool.checkOut(key(99), at: .seconds(100)) { newSession() }.evicted

        #expect(evicted.count == 1)
        #expect(pool.count == ClientSessionPool.limitPerHolder)
        #expect(try pool.checkOut(key(1), at: .seconds(100)) { newSession() }.evicted.isEmpty)
        for client in 2..<ClientSessionPool.limitPerHolder {
            _ = try pool.checkOut(key(client), at: .seconds(101)) { newSession() }
        }
        #expect(throws: AppError.busy) {
            try pool.checkOut(key(ClientSessionPool.limitPerHolder), at: .seconds(102)) { newSession() }
        }
    }

    @Test func `holders that use all sessions of an app leave one for each other holder`() throws {
        var pool = ClientSessionPool()
        for number in 0..<ClientSessionPool.limitPerApp {
            let holder = "grant:\(number / ClientSessionPool.limitPerHolder)"
            let key = ClientSessionPool.Key(endpoint: shop, holder: holder, client: "\(number)")
            _ = try pool.checkOut(key, at: .zero) { newSession() }
        }
        let first = ClientSessionPool.Key(endpoint: shop, holder: "grant:late", client: "1")
        let second = ClientSessionPool.Key(endpoint: shop, holder: "grant:late", client: "2")

        _ = try pool.checkOut(first, at: .zero) { newSession() }

        #expect(throws: AppError.busy) { try pool.checkOut(second, at: .zero) { newSession() } }
    }

    @Test func `the total number of sessions is limited`() throws {
        var pool = ClientSessionPool()
        for number in 1...ClientSessionPool.limit {
            let key = key(1, at: EndpointID("app-\(number)"))
            let session = try pool.checkOut(key, at: .seconds(number)) { newSession() }.session
            pool.checkIn(key, session, at: .seconds(number))
        }

        let evicted = try pool.checkOut(key(1), at: .seconds(100)) { newSession() }.evicted

        #expect(evicted.map(\.0) == [EndpointID("app-1")])
        #expect(pool.count == ClientSessionPool.limit)
    }

    @Test func `the holder with the most idle sessions loses one`() throws {
        var pool = ClientSessionPool()
        for number in 0..<ClientSessionPool.limit {
            // One holder has two sessions, which are the newest.
            let holder = number < ClientSessionPool.limit - 2 ? "grant:\(number)" : "busy"
            let app = EndpointID("app-\(number)")
            let key = ClientSessionPool.Key(endpoint: app, holder: holder, client: "1")
            let session = try pool.checkOut(key, at: .seconds(number)) { newSession() }.session
            pool.checkIn(key, session, at: .seconds(number))
        }

        let evicted = try pool.checkOut(key(1), at: .seconds(1_000)) { newSession() }.evicted

        #expect(evicted.map(\.0) == [EndpointID("app-\(ClientSessionPool.limit - 2)")])
    }

    @Test func `an idle session expires`() throws {
        var pool = ClientSessionPool()
        let idle = try pool.checkOut(key(1), at: .zero) { newSession() }.session
        pool.checkIn(key(1), idle, at: .seconds(1))
        _ = try pool.checkOut(key(2), at: .zero) { newSession() }

        #expect(pool.expire(at: .seconds(600)).isEmpty)
        #expect(pool.expire(at: .seconds(601)).count == 1)
        #expect(pool.count == 1)
    }
}
