import Client
import FoundationEssentials
import Glibc
import Model
import Samples
import Synchronization
import TestSupport
import Testing

@testable import patchbay

@Suite struct SelectorTests {
    private let shop = SampleEndpoints.endpoint("com.example.shop", on: "Test iPhone", phone: SampleEndpoints.phone)
    private let shopOnMac = SampleEndpoints.endpoint(
        "com.example.shop",
        on: "mac",
        name: "Shop on Mac",
        state: .offline
    )
    private let till = SampleEndpoints.endpoint(
        "com.example.till",
        on: "Test iPad",
        name: "Till",
        phone: SampleEndpoints.otherPhone
    )

    private func choose(_ text: String) throws -> Endpoint {
        try EndpointSelector(text: text, command: "patchbay show").choose(among: [shop, shopOnMac, till])
    }

    @Test(arguments: ["shop-test-iphone", "SHOP-TEST-IPHONE", "shop-t", "00008101-000123456789ABCD", "00008101"])
    func `an endpoint is found by ID, prefix or phone`(text: String) throws { #expect(try choose(text).id == shop.id) }

    @Test func `an endpoint is found by the ID that it had before`() throws {
        var merged = shop
        merged.formerIDs = ["shop-iphone"]

        let selector = EndpointSelector(text: "shop-iphone", command: "patchbay show")
        #expect(try selector.choose(among: [shopOnMac, merged]).id == shop.id)
        #expect(throws: CLIError.self) { try selector.choose(among: [shopOnMac, shop]) }
    }

    @Test func `an endpoint is found by its app if only one endpoint matches`() throws {
        #expect(try choose("com.example.till").id == till.id)
        #expect(try choose("till").id == till.id)
    }

    @Test func `an unknown ID of another host suggests no endpoint of a third one`() throws {
        func hint(_ text: String) throws -> String? {
            let other = shop.on("lab2")
            let selector = EndpointSelector(text: text, command: "patchbay call")
            return #expect(throws: CLIError.self) { try selector.choose(among: [other]) }?.hint
        }
        #expect(try hint("shop-test-iphone.lab3") == "patchbay list")
        #expect(try hint("shop-test-iphome.lab2") == "patchbay call shop-test-iphone.lab2")
    }

    @Test(arguments: [("patchbay team", "shop.lab3", false), ("patchbay list", "shop.lab2", true)])
    func `the broker gives the reason for an ID of a host without endpoints`(
        hint: String,
        text: String,
        isListed: Bool
    ) async throws {
        var listed = shop
        listed.host = HostStatus(name: "lab2")
        let list = String(
            decoding: try JSONCoding.encoder().encode(EndpointList(revision: 1, endpoints: [listed])),
            as: UTF8.self
        )
        let problem = String(
            decoding: try JSONCoding.encoder().encode(Problem(.unavailable, "offline", hint: "patchbay team")),
            as: UTF8.self
        )
        let path = "/tmp/patchbay-test-\(UInt64.random(in: 0...UInt64.max)).sock"
        let connections = Atomic(0)
        let server = try LoopbackServer(unixPath: path, backlog: 5, pause: .zero) { socket in
            var buffer = [UInt8](repeating: 0, count: 4_096)
            _ = recv(socket, &buffer, buffer.count, 0)
            let isFirst = connections.add(1, ordering: .relaxed).oldValue == 0
            let body = isFirst ? list : problem
            let answer = "HTTP/1.1 \(isFirst ? 200 : 503) X\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
            _ = answer.withCString { send(socket, $0, strlen($0), CInt(MSG_NOSIGNAL)) }
        }
        defer {
            server.stop()
            unlink(path)
        }
        let selector = EndpointSelector(text: text, command: "patchbay call")
        do {
            _ = try await selector.choose(PatchbayClient(address: .unix(path: path)))
            Issue.record("an endpoint was chosen")
        } catch { #expect(CLIError(describing: error, command: "patchbay call").hint == hint) }
        #expect(connections.load(ordering: .relaxed) == (isListed ? 1 : 2))
    }

    @Test func `a name means an app and not its pages, which are meant if there is nothing else`() throws {
        var pages = SampleEndpoints.endpoint("com.example.till", on: "web", phone: SampleEndpoints.otherPhone)
        pages.kind = .web
        let selector = EndpointSelector(text: "com.example.till", command: "patchbay show")

        #expect(try selector.choose(among: [pages, till]) == till)
        #expect(try selector.choose(among: [pages, shop]) == pages)
        #expect(throws: CLIError.self) { try selector.choose(among: [pages, till, till]) }
    }

    @Test func `an ambiguous name lists the candidates and a command`() {
        let error = #expect(throws: CLIError.self) { try choose("com.example.shop") }

        #expect(
            error
                == CLIError(
                    status: .usage,
                    message: "\"com.example.shop\" matches 2 endpoints",
                    candidates: [
                        "shop-mac          com.example.shop  offline", "shop-test-iphone  com.example.shop  online",
                    ],
                    hint: "patchbay show ID"
                )
        )
    }

    @Test func `the name of one endpoint that is a short name of others is ambiguous`() throws {
        let named = SampleEndpoints.endpoint("shop", on: "evil", name: "shop")
        for text in ["shop", "Shop", "com.example.shop"] {
            let selector = EndpointSelector(text: text, command: "patchbay call")
            let among = text == "com.example.shop" ? [shop, shopOnMac] : [shop, named]
            #expect(throws: CLIError.self) { try selector.choose(among: among) }
        }
    }

    @Test func `a text in another case than an ID may be the name of another endpoint`() throws {
        let other = SampleEndpoints.endpoint("lab", on: "Test iPhone-2", name: "Shop-Test-iPhone")
        let selector = EndpointSelector(text: "Shop-Test-iPhone", command: "patchbay rm")
        #expect(throws: CLIError.self) { try selector.choose(among: [shop, other]) }
        #expect(try selector.choose(among: [shop, till]).id == shop.id)
        #expect(try choose("shop-test-iphone").id == shop.id)
    }

    @Test(arguments: [[.registration], [.bonjour, .registration], []] as [[Sighting.Source]])
    func `a registered app does not take a short name from an unapproved app`(sources: [Sighting.Source]) throws {
        var registered = SampleEndpoints.endpoint("com.example.shop", on: "evil")
        registered.sources = sources
        registered.registered = true
        var pending = shopOnMac
        pending.approval = .pending
        let selector = EndpointSelector(text: "com.example.shop", command: "patchbay call")
        #expect(throws: CLIError.self) { try selector.choose(among: [registered, pending]) }
        #expect(try selector.choose(among: [registered, till]).id == registered.id)
        #expect(throws: CLIError.self) { try selector.choose(among: [registered, shop]) }
    }

    @Test func `a short name selects an approved endpoint, whatever unapproved ones are called`() throws {
        var pending = SampleEndpoints.endpoint("shop", on: "t", name: "till")
        pending.approval = .pending
        for (text, id) in [("shop-t", shop.id), ("till", till.id), ("shop-", shop.id), ("00008101", shop.id)] {
            let selector = EndpointSelector(text: text, command: "patchbay show")
            // A full ID always selects its endpoint.
            let expected = text == "shop-t" ? pending.id : id
            #expect(try selector.choose(among: [pending, shop, till]).id == expected)
        }
    }

    @Test func `a full ID selects its endpoint, also if the ID of another begins with it`() throws {
        var registered = SampleEndpoints.endpoint("shop", on: "new")
        registered.registered = true
        let phone = SampleEndpoints.endpoint("com.example.shop-new", on: "iPhone", phone: SampleEndpoints.phone)
        func choose(_ text: String) throws -> Endpoint {
            try EndpointSelector(text: text, command: "patchbay show").choose(among: [registered, phone])
        }
        #expect(try choose("shop-new").id == registered.id)
        #expect(try choose("shop-new-iphone").id == phone.id)
        #expect(throws: CLIError.self) { try choose("shop-ne") }
    }

    @Test func `a short name of an unapproved endpoint alone is refused without a hint to approve`() throws {
        var pending = SampleEndpoints.endpoint("com.example.shop", on: "evil")
        pending.approval = .pending
        let error = #expect(throws: CLIError.self) {
            try EndpointSelector(text: "shop", command: "patchbay call").choose(among: [pending, till])
        }
        #expect(error?.message == "no approved endpoint matches \"shop\", only shop-evil, which is not approved")
        #expect(error?.hint == "patchbay show shop-evil")
        let full = EndpointSelector(text: "shop-evil", command: "patchbay call")
        #expect(try full.choose(among: [pending, till]).id == pending.id)
    }

    @Test func `an unknown name gets the most similar ID as a hint`() {
        let near = #expect(throws: CLIError.self) { try choose("shop-test-ihpone") }
        let far = #expect(throws: CLIError.self) { try choose("zebra\u{1B}[2J") }

        #expect(near?.status == .notFound)
        #expect(near?.hint == "patchbay show shop-test-iphone")
        #expect(far?.hint == "patchbay list")
        #expect(far?.message == "no endpoint matches \"zebra\u{FFFD}[2J\"")
    }

    @Test func `the only attached phone is the default`() throws {
        let selector = DeviceSelector(text: nil, command: "patchbay forward 22 --device UDID")

        #expect(try selector.choose(among: [SampleEndpoints.device(SampleEndpoints.phone)]) == SampleEndpoints.phone)
        #expect(
            try selector.choose(among: [
                SampleEndpoints.device(SampleEndpoints.phone), SampleEndpoints.device(SampleEndpoints.phone, .network),
            ])
                == SampleEndpoints.phone
        )
        #expect(throws: CLIError.self) { try selector.choose(among: []) }
    }

    @Test func `two attached phones without a selection are an error`() {
        let devices = [
            SampleEndpoints.device(SampleEndpoints.otherPhone), SampleEndpoints.device(SampleEndpoints.phone),
        ]

        let error = #expect(throws: CLIError.self) {
            try DeviceSelector(text: nil, command: "patchbay forward 22 --device UDID").choose(among: devices)
        }

        #expect(error?.candidates == [SampleEndpoints.phone.text, SampleEndpoints.otherPhone.text])
        #expect(
            error?.hint == "patchbay forward 22 --device \(SampleEndpoints.phone), or \(SampleEndpoints.otherPhone)"
        )
    }

    @Test func `a unique UDID prefix selects a phone in any spelling`() throws {
        let devices = [
            SampleEndpoints.device(SampleEndpoints.otherPhone), SampleEndpoints.device(SampleEndpoints.phone),
        ]
        func choose(_ text: String) throws -> UDID {
            try DeviceSelector(text: text, command: "patchbay devices").choose(among: devices)
        }

        #expect(try choose("00008110") == SampleEndpoints.otherPhone)
        #expect(try choose("0000811000aa") == SampleEndpoints.otherPhone)
        #expect(throws: CLIError.self) { try choose("00008") }
        #expect(throws: CLIError.self) { try choose("abc") }
    }

    @Test(arguments: ["Anna’s iPhone", "anna's iphone"])
    func `a unique name selects a phone, with either apostrophe`(text: String) throws {
        let devices = [
            SampleEndpoints.device(SampleEndpoints.otherPhone, name: "Bert"),
            SampleEndpoints.device(SampleEndpoints.phone, name: "Anna’s iPhone"),
            SampleEndpoints.device(SampleEndpoints.phone, .network, name: "Anna’s iPhone"),
        ]

        #expect(try DeviceSelector(text: text, command: "").choose(among: devices) == SampleEndpoints.phone)
    }

    @Test func `an ambiguous phone name lists the candidates with their names`() {
        let devices = [
            SampleEndpoints.device(SampleEndpoints.otherPhone, name: "iPhone"),
            SampleEndpoints.device(SampleEndpoints.phone, name: "iPhone"),
        ]
        let command = "patchbay forward 22 --device UDID"

        let error = #expect(throws: CLIError.self) {
            try DeviceSelector(text: "iphone", command: command).choose(among: devices)
        }

        #expect(error?.message == "\"iphone\" matches 2 phones")
        #expect(error?.candidates == ["\(SampleEndpoints.phone)  iPhone", "\(SampleEndpoints.otherPhone)  iPhone"])
        #expect(
            error?.hint == "patchbay forward 22 --device \(SampleEndpoints.phone), or \(SampleEndpoints.otherPhone)"
        )
    }

    @Test func `a complete UDID is accepted without an attached phone`() throws {
        let udid = try DeviceSelector(text: "0000810100ffffffffffffff", command: "").choose(among: [])

        #expect(udid.text == "00008101-00FFFFFFFFFFFFFF")
    }

    @Test func `an empty list of phones is explained by the state of the USB source`() {
        let none = CLIError.notFound("no phone is attached", try: "plug one in")
        let off = MissingDeviceExplanation(status: SourceStatus(name: "usbmuxd", state: .off, detail: "turned off"))
        let missing = MissingDeviceExplanation(
            status: SourceStatus(
                name: "usbmuxd",
                state: .missing,
                detail: "usbmuxd is not there",
                hint: "apt install usbmuxd"
            )
        )
        let well = MissingDeviceExplanation(status: SourceStatus(name: "usbmuxd", state: .ok, detail: "0 phones"))

        #expect(off.explain(none).message == "phones are turned off by devices.enabled = false")
        #expect(missing.explain(none).message == "no phone is attached: usbmuxd is not there")
        #expect(missing.explain(none).hint == "apt install usbmuxd")
        #expect(well.explain(none) == none)
    }

    @Test func `iproxy reports the phones that its options exclude`() {
        var request = IproxyArguments()
        request.takesNetwork = true

        #expect(IproxyCommand.absence(of: request, []) == "no phone is attached")
        #expect(
            IproxyCommand.absence(of: request, [SampleEndpoints.device(SampleEndpoints.phone)]).hasPrefix(
                "no phone is on the network (-n excludes 1 phone"
            )
        )
    }

    @Test func `an empty name is a usage error`() {
        let error = #expect(throws: CLIError.self) { try choose("") }

        #expect(error?.status == .usage)
    }
}
