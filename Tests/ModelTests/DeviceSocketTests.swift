import FoundationEssentials
import Model
import Testing

@Suite struct DeviceSocketTests {
    private let udid = "00008030-001A2B3C4D5E6F70"

    @Test(arguments: [
        "chrome_devtools_remote", "webview_devtools_remote_4711", "stetho_com.example.shop_devtools_remote",
        "/data/a-b",
        String(repeating: "a", count: 107),
    ])
    func `the name of an abstract socket is accepted`(text: String) throws {
        let socket = DeviceSocket.abstract(try #require(AbstractSocketName(text)))

        #expect(socket.description == "localabstract:\(text)")
        #expect(socket.port == nil)
    }

    @Test(arguments: [
        "", "a\0b", "a:b", "a;b", "a b", "a\n", "é", "a@b", "a,b", String(repeating: "a", count: 108),
    ])
    func `a name that could change the request to the adb server is refused`(text: String) {
        #expect(AbstractSocketName(text) == nil)
        #expect(throws: DecodingError.self) {
            try JSONCoding.decoder().decode([AbstractSocketName].self, from: JSONEncoder().encode([text]))
        }
    }

    @Test func `a target on a phone has a port or the name of an abstract socket`() throws {
        let json =
            #"[{"device":{"port":22,"udid":"\#(udid)"}},{"device":{"abstractSocket":"chrome","udid":"\#(udid)"}}]"#
        let phone = try #require(UDID(udid))
        let name = try #require(AbstractSocketName("chrome"))
        let targets: [TunnelTarget] = [
            .device(udid: phone, port: 22), .device(USBRoute(udid: phone, socket: .abstract(name))),
        ]

        #expect(try JSONCoding.decoder().decode([TunnelTarget].self, from: Data(json.utf8)) == targets)
        #expect(try String(decoding: JSONCoding.encoder().encode(targets), as: UTF8.self) == json)
        let route = Route.usb(USBRoute(udid: phone, socket: .abstract(name)))
        #expect(route.description == "usb:\(udid):localabstract:chrome")
        #expect(try JSONCoding.decoder().decode(Route.self, from: JSONCoding.encoder().encode(route)) == route)
    }
}
