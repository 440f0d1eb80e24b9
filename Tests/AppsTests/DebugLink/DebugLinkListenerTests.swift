import Model
import SystemIO
import TestSupport
import Testing

@testable import Apps

@Suite(.timeLimit(.minutes(2))) struct DebugLinkListenerTests {
    @Test func `apps of both framings are held with their states, actions and pictures`() async throws {
        try await DebugLinkFixture.running { listener in
            var changes = await Changes(of: listener)
            let one = try await FakeApp.connect(to: listener, &changes, .objcio)
            let two = try await FakeApp.connect(to: listener, &changes, .jsonOverTCP)
            try await one.send(#"{"a": 1}"#, picture: "/9j/")
            try await changes.waitForState(1, of: one.id)
            try await one.send(#"{"a": 2}"#)
            try await two.send(#"{"b": 1}"#)
            try await changes.waitForState(1, of: two.id)
            let apps = listener.apps
            try await eventually("both states of the first app are held") {
                try await apps.states(of: one.id).count == 2
            }

            let states = try await apps.states(of: one.id)
            #expect(states.map(\.number) == [1, 2])
            #expect(states.map(\.action?.text) == ["tap", "tap"])
            #expect(states.map(\.picture) == [.held(bytes: 6), .none])
            #expect(try await apps.state(1, of: one.id) == Array(#"{"a": 1}"#.utf8)[...])
            #expect(try await apps.picture(ofState: 1, of: one.id) == [0xFF, 0xD8, 0xFF])
            #expect(try await apps.diff(fromState: 1, to: 2, of: one.id).changes.map(\.pointer.description) == ["/a"])
            let pointer = try #require(JSONPointer("/b"))
            #expect(try await apps.value(at: pointer, inState: 1, of: two.id) == 1)
            await #expect(throws: DebugLinkError.noSuchValue(pointer, state: 1)) {
                try await apps.value(at: pointer, inState: 1, of: one.id)
            }
            #expect(await apps.apps.map(\.framing) == [.objcio, .jsonOverTCP])
        }
    }

    @Test(arguments: DebugFraming.allCases)
    func `a state is sent to its app only, as one frame in the framing of the app`(framing: DebugFraming) async throws {
        try await DebugLinkFixture.running { listener in
            var changes = await Changes(of: listener)
            let app = try await FakeApp.connect(to: listener, &changes, framing)
            let other = try await FakeApp.connect(to: listener, &changes)
            let state = #"{ "text" : "\#(String(repeating: "\\/", count: 5_000))" }"#
            for (number, text) in [state, #"{"text":""}"#].enumerated() {
                try await app.send(text)
                try await changes.waitForState(number + 1, of: app.id)
            }
            try await other.send(#"{"text":"other"}"#)
            try await changes.waitForState(1, of: other.id)

            try await listener.apps.send(state: 1, to: app.id)
            #expect(try await app.stream.receiveSome() == framing.frame(Array(state.utf8)))

            // The first bytes for the other app are its own.
            try await listener.apps.send(state: 1, to: other.id)
            #expect(try await other.receiveState() == #"{"text":"other"}"#)
            try await listener.apps.send(state: 2, to: app.id)
            #expect(try await app.receiveState() == #"{"text":""}"#)
        }
    }

    @Test func `states sent at once arrive as whole frames`() async throws {
        try await DebugLinkFixture.running { listener in
            var changes = await Changes(of: listener)
            let app = try await FakeApp.connect(to: listener, &changes)
            let state = "[\"\(String(repeating: "x", count: 3_000_000))\"]"
            try await app.send(state)
            try await changes.waitForState(1, of: app.id)

            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<3 { group.addTask { try await listener.apps.send(state: 1, to: app.id) } }
                let frame = DebugFraming.objcio.frame(Array(state.utf8))
                #expect(try await app.stream.receive(3 * frame.count) == frame + frame + frame)
                try await group.waitForAll()
            }
        }
    }

    @Test func `a state of another shape or of no app is not sent`() async throws {
        try await DebugLinkFixture.running { listener in
            var changes = await Changes(of: listener)
            let app = try await FakeApp.connect(to: listener, &changes)
            for (number, state) in [#"{"a":1}"#, #"{"a":"1"}"#, "{,}", #"{"a":"2"}"#].enumerated() {
                try await app.send(state)
                try await changes.waitForState(number + 1, of: app.id)
            }
            let difference = #""/a" is a number, and a text in the app's last state"#

            await #expect(throws: DebugLinkError.differentShape(difference, fitting: [2, 4])) {
                try await listener.apps.send(state: 1, to: app.id)
            }
            await #expect(throws: DebugLinkError.invalidState(JSONError(reason: .unexpected, offset: 1))) {
                try await listener.apps.send(state: 3, to: app.id)
            }
            await #expect(throws: DebugLinkError.noSuchState(5, held: 1...4)) {
                try await listener.apps.send(state: 5, to: app.id)
            }
            await #expect(throws: DebugLinkError.noSuchApp(99)) { try await listener.apps.send(state: 1, to: 99) }
            try await listener.apps.send(state: 2, to: app.id)
            #expect(try await app.receiveState() == #"{"a":"1"}"#)
        }
    }

    @Test func `the states of a disconnected app are readable and are not sent`() async throws {
        var limits = DebugLinkLimits()
        limits.disconnectedApps = 1
        try await DebugLinkFixture.running(limits: limits) { listener in
            var changes = await Changes(of: listener)
            var ids: [Int] = []
            for _ in 0..<2 {
                let app = try await FakeApp.connect(to: listener, &changes)
                try await app.send("{}")
                try await changes.waitForState(1, of: app.id)
                app.stream.finish()
                #expect(try await changes.waitForEnd(of: app.id) == nil)
                ids.append(app.id)
            }
            let last = ids[1]

            #expect(try await listener.apps.state(1, of: last) == Array("{}".utf8)[...])
            #expect(await listener.apps.apps.map(\.isConnected) == [false])
            await #expect(throws: DebugLinkError.disconnected(app: last)) {
                try await listener.apps.send(state: 1, to: last)
            }
            await #expect(throws: DebugLinkError.noSuchApp(ids[0])) { try await listener.apps.states(of: ids[0]) }
        }
    }

    @Test func `an app above the limit is disconnected, and a freed place is reusable`() async throws {
        var limits = DebugLinkLimits()
        limits.apps = 1
        try await DebugLinkFixture.running(limits: limits) { listener in
            var changes = await Changes(of: listener)
            let app = try await FakeApp.connect(to: listener, &changes)

            let rejected = try await SocketStream.connect(to: listener.address)
            #expect((try? await rejected.receiveSome()) ?? [] == [])

            app.stream.finish()
            _ = try await changes.waitForEnd(of: app.id)
            let next = try await FakeApp.connect(to: listener, &changes)
            try await next.send("{}")
            try await changes.waitForState(1, of: next.id)
        }
    }

    @Test func `the app that needs the most memory loses its oldest pictures`() async throws {
        var limits = DebugLinkLimits()
        limits.bytes = 10_000
        try await DebugLinkFixture.running(limits: limits) { listener in
            var changes = await Changes(of: listener)
            let small = try await FakeApp.connect(to: listener, &changes)
            try await small.send("1", picture: DebugLinkFixture.picture(1_000))
            try await changes.waitForState(1, of: small.id)
            let large = try await FakeApp.connect(to: listener, &changes)
            for number in 1...20 {
                try await large.send("1", picture: DebugLinkFixture.picture(2_000))
                try await changes.waitForState(number, of: large.id)
            }

            let apps = await listener.apps.apps
            #expect(apps.map(\.heldBytes).reduce(0, +) <= 10_000)
            #expect(apps.map(\.droppedPictures) == [0, 16])
            #expect(apps.map(\.lastState) == [1, 20])
            #expect(try await listener.apps.states(of: large.id).count == 20)
        }
    }

    @Test func `500 frames of 2 MB arrive without a loss`() async throws {
        try await DebugLinkFixture.running { listener in
            var changes = await Changes(of: listener)
            let app = try await FakeApp.connect(to: listener, &changes)
            let picture = DebugLinkFixture.picture(2_000_000)
            let frame = DebugFraming.objcio.frame(FakeApp.message(#"{"a":1}"#, picture: picture))

            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { for _ in 0..<500 { try await app.stream.send(frame) } }
                try await changes.waitForState(500, of: app.id)
                try await group.waitForAll()
            }

            let described = try #require(await listener.apps.apps.first)
            #expect(described.heldBytes <= DebugLinkLimits().bytesPerApp)
            #expect(described.droppedStates == 450)
            #expect(try await listener.apps.picture(ofState: 500, of: app.id).count == 1_500_000)
        }
    }
}
