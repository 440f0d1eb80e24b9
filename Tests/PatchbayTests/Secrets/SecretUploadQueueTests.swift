import Client
import Model
import Testing

@testable import patchbay

@Suite struct SecretUploadQueueTests {
    private let start = ContinuousClock.now
    private let url = SessionURL(port: 9_876, token: Secret("first"))
    private let next = SessionURL(port: 9_876, token: Secret("second"))

    private func shop(_ name: String = "Test iPhone", boot: String? = nil) -> Endpoint {
        var endpoint = Samples.endpoint("com.example.shop", on: name, phone: Samples.phone)
        endpoint.boot = boot.map { SanitizedText($0) }
        return endpoint
    }

    @Test func `a token waits for the list, and for its app to be in it`() {
        var deliveries = SecretUploadQueue()
        deliveries.found(url, at: start)
        #expect(deliveries.due(at: start).isEmpty)
        deliveries.listed([])
        #expect(deliveries.due(at: start).isEmpty)
        #expect(deliveries.missing.map(\.obstacle.message) == ["no AppReveal app with port 9876 is listed"])

        deliveries.changed(EndpointChange(revision: 2, kind: .added, endpoint: shop()))

        #expect(deliveries.due(at: start).map(\.session) == [url])
        #expect(!deliveries.isDone)
    }

    @Test func `what was given is not given again, and a newer token of the app is`() throws {
        var deliveries = SecretUploadQueue()
        deliveries.listed([shop()])
        deliveries.found(url, at: start)
        deliveries.given(try #require(deliveries.due(at: start).first))
        #expect(deliveries.isDone)
        #expect(deliveries.due(at: start).isEmpty)

        deliveries.found(next, at: start)

        #expect(!deliveries.isDone)
        #expect(deliveries.due(at: start).map(\.session) == [next])
    }

    @Test func `an answer about an older token says nothing about the newer one`() throws {
        var deliveries = SecretUploadQueue()
        deliveries.listed([shop()])
        deliveries.found(url, at: start)
        let old = try #require(deliveries.due(at: start).first)
        deliveries.found(next, at: start)

        deliveries.given(old)

        #expect(deliveries.due(at: start).map(\.session) == [next])
    }

    @Test func `a launch that the broker learns of after the token gets it too, but no later launch`() throws {
        var deliveries = SecretUploadQueue()
        deliveries.listed([shop(boot: "1")])
        deliveries.found(url, at: start)
        deliveries.given(try #require(deliveries.due(at: start).first))

        deliveries.listed([shop(boot: "2")])

        #expect(deliveries.due(at: start + .seconds(1)).map(\.session) == [url])
        #expect(deliveries.due(at: start + .seconds(31)).isEmpty)
    }

    @Test func `a no is taken for an answer until the endpoint changes`() throws {
        var deliveries = SecretUploadQueue()
        var endpoint = shop()
        endpoint.approval = .discovered
        deliveries.listed([endpoint])
        deliveries.found(url, at: start)
        let due = try #require(deliveries.due(at: start).first)
        deliveries.refused(due, CLIError(status: .notPermitted, message: "nobody approved it"))
        #expect(deliveries.due(at: start + .seconds(60)).isEmpty)
        #expect(deliveries.missing.map(\.obstacle.message) == ["nobody approved it"])

        endpoint.approval = .approved
        deliveries.changed(EndpointChange(revision: 3, kind: .changed, endpoint: endpoint))

        #expect(deliveries.due(at: start + .seconds(60)).count == 1)
    }

    @Test func `two apps with one port get nothing, until the person says which`() {
        var deliveries = SecretUploadQueue()
        deliveries.listed([shop(), shop("Other iPhone")])
        deliveries.found(url, at: start)
        #expect(deliveries.due(at: start).isEmpty)
        #expect(deliveries.missing.map(\.obstacle.message) == ["port 9876 fits 2 endpoints; name one with --endpoint"])

        var told = SecretUploadQueue(
            selector: EndpointSelector(text: "shop-other-iphone", command: "patchbay secret scan")
        )
        told.listed([shop(), shop("Other iPhone")])
        told.found(url, at: start)

        #expect(told.due(at: start).map(\.endpoint.text) == ["shop-other-iphone"])
    }

    @Test func `a stream of made up ports is not remembered without end`() {
        var deliveries = SecretUploadQueue()

        for port in 1...1_000 { deliveries.found(SessionURL(port: UInt16(port), token: Secret("x")), at: start) }

        #expect(deliveries.missing.count == 64)
    }
}
