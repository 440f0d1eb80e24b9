import Client
import Model
import Samples
import Testing

@testable import patchbay

@Suite struct SecretUploadQueueTests {
    private let start = ContinuousClock.now
    private let url = SessionURL(origin: .loopback(9_876), token: Secret("first"))
    private let next = SessionURL(origin: .loopback(9_876), token: Secret("second"))

    private func shop(_ name: String = "Test iPhone", boot: String? = nil) -> Endpoint {
        var endpoint = SampleEndpoints.endpoint("com.example.shop", on: name, phone: SampleEndpoints.phone)
        endpoint.launchID = boot.map { SanitizedText($0) }
        return endpoint
    }

    @Test func `a token is uploaded after its app is listed`() {
        var queue = SecretUploadQueue()
        queue.add(url, at: start)
        #expect(queue.dueUploads(at: start).isEmpty)
        queue.setEndpoints([])
        #expect(queue.dueUploads(at: start).isEmpty)
        #expect(queue.missing.map(\.obstacle.message) == ["no AppReveal app with port 9876 is listed"])

        queue.apply(EndpointChange(revision: 2, kind: .added, endpoint: shop()))

        #expect(queue.dueUploads(at: start).map(\.session) == [url])
        #expect(!queue.isDone)
    }

    @Test func `a stored token is not uploaded again, and a newer token is uploaded`() throws {
        var queue = SecretUploadQueue()
        queue.setEndpoints([shop()])
        queue.add(url, at: start)
        queue.didUpload(try #require(queue.dueUploads(at: start).first))
        #expect(queue.isDone)
        #expect(queue.dueUploads(at: start).isEmpty)

        queue.add(next, at: start)

        #expect(!queue.isDone)
        #expect(queue.dueUploads(at: start).map(\.session) == [next])
    }

    @Test func `the result for an older token does not affect the newer token`() throws {
        var queue = SecretUploadQueue()
        queue.setEndpoints([shop()])
        queue.add(url, at: start)
        let old = try #require(queue.dueUploads(at: start).first)
        queue.add(next, at: start)

        queue.didUpload(old)

        #expect(queue.dueUploads(at: start).map(\.session) == [next])
    }

    @Test func `a launch detected within 30 s gets the token, and a later launch does not`() throws {
        var queue = SecretUploadQueue()
        queue.setEndpoints([shop(boot: "1")])
        queue.add(url, at: start)
        queue.didUpload(try #require(queue.dueUploads(at: start).first))

        queue.setEndpoints([shop(boot: "2")])

        #expect(queue.dueUploads(at: start + .seconds(1)).map(\.session) == [url])
        #expect(queue.dueUploads(at: start + .seconds(31)).isEmpty)
    }

    @Test func `a rejected upload is retried only after the endpoint changes`() throws {
        var queue = SecretUploadQueue()
        var endpoint = shop()
        endpoint.approval = .pending
        queue.setEndpoints([endpoint])
        queue.add(url, at: start)
        let due = try #require(queue.dueUploads(at: start).first)
        queue.didReject(due, CLIError(status: .notPermitted, message: "nobody approved it"))
        #expect(queue.dueUploads(at: start + .seconds(60)).isEmpty)
        #expect(queue.missing.map(\.obstacle.message) == ["nobody approved it"])

        endpoint.approval = .approved
        queue.apply(EndpointChange(revision: 3, kind: .changed, endpoint: endpoint))

        #expect(queue.dueUploads(at: start + .seconds(60)).count == 1)
    }

    @Test func `a port of two apps needs --endpoint`() {
        var queue = SecretUploadQueue()
        queue.setEndpoints([shop(), shop("Other iPhone")])
        queue.add(url, at: start)
        #expect(queue.dueUploads(at: start).isEmpty)
        #expect(queue.missing.map(\.obstacle.message) == ["port 9876 matches 2 endpoints; select one with --endpoint"])

        var selective = SecretUploadQueue(
            selector: EndpointSelector(text: "shop-other-iphone", command: "patchbay secret scan")
        )
        selective.setEndpoints([shop(), shop("Other iPhone")])
        selective.add(url, at: start)

        #expect(selective.dueUploads(at: start).map(\.endpoint.text) == ["shop-other-iphone"])
    }

    @Test func `an unapproved app on the port of an approved one does not count`() {
        var stranger = shop("Other iPhone")
        stranger.approval = .pending
        var queue = SecretUploadQueue()
        queue.setEndpoints([stranger, shop()])

        queue.add(url, at: start)

        #expect(queue.dueUploads(at: start).map(\.endpoint.text) == ["shop-test-iphone"])
    }

    private func endpoint(_ name: String, at route: Route) -> Endpoint {
        var endpoint = SampleEndpoints.endpoint("com.example.shop", on: name)
        endpoint.routes = [EndpointRoute(route)]
        return endpoint
    }

    private var apps: [Endpoint] {
        [
            endpoint("desk", at: .network(NetworkRoute(address: "127.0.0.1", port: 9_876))),
            endpoint(
                "pixel",
                at: .network(NetworkRoute(address: "192.168.1.20", port: 9_876, machine: SanitizedText("Pixel.local")))
            ),
            endpoint("tv", at: .network(NetworkRoute(address: "fe80::1", port: 9_876, interface: "wlan0"))),
        ]
    }

    @Test(arguments: [
        ("127.0.0.1", "shop-desk"), ("localhost", "shop-desk"), ("192.168.1.20", "shop-pixel"),
        ("pixel.local", "shop-pixel"), ("fe80::1", "shop-tv"),
    ]) func `the host of the URL selects one of several apps with its port`(host: String, id: String) {
        var queue = SecretUploadQueue()
        queue.setEndpoints(apps)

        queue.add(SessionURL(origin: .init(host: host, port: 9_876), token: Secret("x")), at: start)

        #expect(queue.dueUploads(at: start).map(\.endpoint.text) == [id])
    }

    @Test func `a loopback URL may be of a phone, so the host selects none`() {
        var queue = SecretUploadQueue()
        queue.setEndpoints(apps + [shop()])

        queue.add(url, at: start)

        #expect(queue.dueUploads(at: start).isEmpty)
        #expect(queue.missing.map(\.obstacle.message) == ["port 9876 matches 4 endpoints; select one with --endpoint"])
    }

    @Test func `URLs of two hosts with one port are two tokens`() {
        var queue = SecretUploadQueue()
        queue.setEndpoints(apps)

        for host in ["127.0.0.1", "192.168.1.20"] {
            queue.add(SessionURL(origin: .init(host: host, port: 9_876), token: Secret(host)), at: start)
        }

        #expect(Set(queue.dueUploads(at: start).map(\.endpoint.text)) == ["shop-desk", "shop-pixel"])
    }

    @Test func `at most 64 ports are stored`() {
        var queue = SecretUploadQueue()

        for port in 1...1_000 { queue.add(SessionURL(origin: .loopback(UInt16(port)), token: Secret("x")), at: start) }

        #expect(queue.missing.count == 64)
    }
}
