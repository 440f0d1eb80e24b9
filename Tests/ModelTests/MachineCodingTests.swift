import FoundationEssentials
import Model
import Testing

/// JSON of the API and of saved files, in which the key of a machine is older than the word.
@Suite struct MachineCodingTests {
    private let machine = SanitizedText("iphone.local")

    private func check<Value: Codable & Equatable>(_ value: Value, _ json: String) throws {
        #expect(String(decoding: try JSONCoding.encoder().encode(value), as: UTF8.self) == json)
        #expect(try JSONCoding.decoder().decode(Value.self, from: Data(json.utf8)) == value)
    }

    @Test func `the machine of a network route has the key host`() throws {
        try check(
            NetworkRoute(address: "10.0.0.2", port: 80, interface: "wlan0", interfaceIndex: 3, machine: machine),
            #"{"address":"10.0.0.2","host":"iphone.local","interface":"wlan0","interfaceIndex":3,"port":80}"#
        )
        try check(
            NetworkRoute(address: "10.0.0.2", port: 80, registration: "r1"),
            #"{"address":"10.0.0.2","interfaceIndex":0,"port":80,"registration":"r1"}"#
        )
    }

    @Test func `the machine of an endpoint has the key host`() throws {
        try check(
            Endpoint.Location(deviceName: SanitizedText("Anna’s iPhone"), machine: machine),
            #"{"deviceName":"Anna’s iPhone","host":"iphone.local"}"#
        )
    }

    @Test func `the machine of an approval has the key host`() throws {
        try check(
            Approval(
                id: "a1",
                endpoint: try #require(EndpointID("shop")),
                approvedBy: .broker,
                approvedAt: Date(timeIntervalSince1970: 0),
                app: SanitizedText("com.example.shop"),
                machine: machine,
                addresses: [],
                port: 80
            ),
            #"{"addresses":[],"app":"com.example.shop","approvedAt":"1970-01-01T00:00:00.000Z","approvedBy":"broker","#
                + #""endpoint":"shop","host":"iphone.local","id":"a1","port":80}"#
        )
    }

    @Test func `the machine of a broker on the network has the key host`() throws {
        try check(
            NearbyBroker(
                id: SanitizedText("abcdefghijklmnop"),
                name: SanitizedText("lab"),
                machine: machine,
                addresses: ["10.0.0.2"],
                port: 7_283,
                pair: .open
            ),
            #"{"addresses":["10.0.0.2"],"host":"iphone.local","id":"abcdefghijklmnop","name":"lab","#
                + #""pair":"open","port":7283}"#
        )
    }
}
