import Testing

@testable import Devices

@Suite struct ServerAddressTests {
    @Test(arguments: [
        ("UNIX:/run/a", ServerAddress.unix(path: "/run/a")), ("unix:/run/a", .unix(path: "/run/a")),
        ("/run/a b", .unix(path: "/run/a b")), ("phones.example:27015", .tcp(host: "phones.example", port: 27015)),
        ("127.0.0.1:1", .tcp(host: "127.0.0.1", port: 1)), ("[::1]:65535", .tcp(host: "::1", port: 65535)),
    ])
    func `every address form used by tools is accepted`(text: String, expected: ServerAddress) throws {
        #expect(try ServerAddress(usbmuxd: text) == expected)
    }

    @Test(arguments: [
        "", "usbmuxd", "UNIX:", "UNIX:relative", "27015", ":27015", "host:", "host:0", "host:65536", "host:-1",
        "::1:80",
        "[::1]", "[::1]:", "[host]:80", "[]:80", "a b:80", "tcp://host:80", "/\u{0}",
        "/" + String(repeating: "a", count: 107),
    ])
    func `any other form is rejected with the accepted forms`(text: String) {
        let error = #expect(throws: UsbmuxError.self) { try ServerAddress(usbmuxd: text) }

        #expect(error?.description.contains("[v6]:port") == true)
    }

    @Test func `terminal escapes of an invalid address are removed from the error`() {
        let error = #expect(throws: UsbmuxError.self) { try ServerAddress(usbmuxd: "\u{1B}[2Jx") }

        #expect(error?.description.contains("\u{1B}") == false)
    }

    @Test func `an unset or empty variable selects the standard socket`() throws {
        #expect(try ServerAddress(usbmuxdIn: [:]) == .unix(path: "/var/run/usbmuxd"))
        #expect(try ServerAddress(usbmuxdIn: ["USBMUXD_SOCKET_ADDRESS": ""]) == .standardUsbmuxd)
        #expect(try ServerAddress(usbmuxdIn: ["USBMUXD_SOCKET_ADDRESS": "/p"]) == .unix(path: "/p"))
    }

    @Test(arguments: ["UNIX:/run/a", "127.0.0.1:27015", "[::1]:27015"])
    func `libusbmuxd gets the form that it accepts`(text: String) throws {
        #expect(try ServerAddress(usbmuxd: text).libusbmuxdForm == text)
    }
}
