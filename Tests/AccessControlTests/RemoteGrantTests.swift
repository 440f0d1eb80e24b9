import FoundationEssentials
import Model
import Synchronization
import Testing

@testable import AccessControl

/// Grants at the remote listener, without a disk.
@Suite struct RemoteGrantTests {
    private static let remote = RequestSource.remote(address: "192.168.1.7")

    private let clock = TestClock()
    private let token = Token(random: .grant)
    private let key: KeyPin
    private let other: KeyPin

    init() throws {
        key = try #require(KeyPin(digest: [UInt8](repeating: 1, count: 32)))
        other = try #require(KeyPin(digest: [UInt8](repeating: 2, count: 32)))
    }

    /// An access state with one grant, which lives for a minute.
    private func live(_ binding: GrantBinding, remote: Bool? = nil) -> InMemoryAccessState {
        let time = MonotonicWallClock(highWater: nil, reading: clock.read())
        var record = GrantRecord.sample(token.id, digest: Data(token.digest), binding: binding, at: time.now)
        record.remote = remote
        var change = ChangeSet()
        change.grants = [record]
        var state = AccessState()
        state.apply(change)
        return InMemoryAccessState(state, time, reading: clock.read)
    }

    private func accepts(_ live: InMemoryAccessState, from source: RequestSource) -> Bool {
        if case .accepted = live.verify(token, from: source).0 { true } else { false }
    }

    @Test func `a remote client with the key of a grant has the grant until the grant ends`() {
        let live = live(.key(key))

        #expect(live.grant(boundTo: key, from: Self.remote)?.id == token.id)
        #expect(live.grant(boundTo: other, from: Self.remote) == nil)
        clock.pass(60)
        #expect(live.grant(boundTo: key, from: Self.remote) == nil)
    }

    @Test(arguments: [Fixture.loopback, Fixture.socket])
    func `a key counts at the remote listener only`(source: RequestSource) {
        #expect(live(.key(key)).grant(boundTo: key, from: source) == nil)
    }

    @Test(arguments: [remote, Fixture.loopback, Fixture.socket])
    func `a grant that is bound to a key is not used with a token`(source: RequestSource) {
        #expect(!accepts(live(.key(key), remote: true), from: source))
    }

    @Test func `a bearer grant is refused remotely, unless it was made for remote use`() {
        #expect(!accepts(live(.bearer), from: Self.remote))
        #expect(accepts(live(.bearer), from: Fixture.loopback))
        #expect(accepts(live(.bearer, remote: true), from: Self.remote))
        #expect(accepts(live(.bearer, remote: true), from: Fixture.loopback))
    }

    @Test func `of two grants for one key the newer one counts, and then the older one`() {
        let live = live(.key(key))
        let now = live.now()
        var change = ChangeSet()
        change.grants = [.sample("newerone", binding: .key(key), createdAt: now + 1, at: now, for: 30)]
        live.content.withLock { $0.apply(change) }

        #expect(live.grant(boundTo: key, from: Self.remote)?.id == "newerone")
        clock.pass(30)
        #expect(live.grant(boundTo: key, from: Self.remote)?.id == token.id)
    }

    @Test func `a binding survives JSON`() throws {
        for binding in [GrantBinding.bearer, .user(1_000), .key(key)] {
            let data = try JSONEncoder().encode([binding])
            #expect(try JSONDecoder().decode([GrantBinding].self, from: data) == [binding])
        }
        let text = String(decoding: try JSONEncoder().encode(GrantBinding.key(key)), as: UTF8.self)
        #expect(text == "{\"key\":\"\(key)\"}")
    }
}
