import Glibc
import SystemIO
import Testing

@Suite struct SocketAddressTests {
    @Test(arguments: [
        "8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "198.17.0.1",
        "198.20.0.1", "223.255.255.255", "2606:4700::1111", "2001:4860:4860::8888", "2001:200::1", "3ffe::1",
    ])
    func `an address of the internet is public`(text: String) throws {
        #expect(try #require(SocketAddress(numeric: text, port: 443)).isPublic)
    }

    @Test(arguments: [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.1",
        "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1",
        "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
        "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:8.8.8.8", "::ffff:127.0.0.1",
        "::8.8.8.8", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:7f00:1::",
        "2001:1ff::1", "2001:db8::1", "2002:7f00:1::1", "3fff::1", "3fff:fff::1", "4000::1", "fc00::1",
        "fd12:3456::1", "fe80::1", "fec0::1", "ff02::1",
    ])
    func `an address of this machine, of a network, or with another address inside is not public`(text: String) throws {
        #expect(try !#require(SocketAddress(numeric: text, port: 443)).isPublic)
    }

    @Test(arguments: ["127.0.0.1:80", "0.0.0.0:1", "[::1]:65535", "[fe80::1%lo]:443", "[2001:db8::ff]:8080"])
    func `an address survives conversion to the kernel's format and back`(_ text: String) throws {
        let parts = try #require(text.lastIndex(of: ":"))
        let host = text[..<parts].filter { $0 != "[" && $0 != "]" }
        let port = try #require(UInt16(text[text.index(after: parts)...]))
        let address = try #require(SocketAddress(numeric: host, port: port))

        var storage = sockaddr_storage()
        try address.withRaw { raw, length in
            withUnsafeMutableBytes(of: &storage) {
                $0.copyMemory(from: UnsafeRawBufferPointer(start: raw, count: Int(length)))
            }
        }

        #expect(SocketAddress(storage) == address)
        #expect(address.description == text)
    }

    @Test(arguments: [
        "", "localhost", "127.1", "1.2.3.4.5", "::1%", "fe80::1%nosuchinterface", "127.0.0.1\0evil", "[::1]",
    ])
    func `a text that is not a numeric address is rejected`(_ text: String) {
        #expect(SocketAddress(numeric: text, port: 1) == nil)
    }

    @Test func `addresses are classified as unspecified, multicast, loopback and link-local`() throws {
        func address(_ text: String) throws -> SocketAddress { try #require(SocketAddress(numeric: text, port: 1)) }

        for text in ["0.0.0.0", "::", "::ffff:0.0.0.0"] { #expect(try address(text).isUnspecified) }
        for text in ["224.0.0.251", "255.255.255.255", "ff02::fb", "::ffff:239.1.1.1"] {
            #expect(try address(text).isMulticast)
        }
        for text in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] { #expect(try address(text).isLoopback) }
        for text in ["10.0.0.1", "2001:db8::1", "fe80::1"] {
            let address = try address(text)
            #expect(!address.isUnspecified && !address.isMulticast && !address.isLoopback)
        }
        #expect(try address("fe80::1").needsScope && address("febf::1").needsScope)
        #expect(try !address("fec0::1").needsScope && !address("2001:db8::1").needsScope)
    }

    @Test(arguments: ["", "/a\0b", "/" + String(repeating: "x", count: 108)])
    func `a path that the kernel would truncate is rejected`(_ path: String) {
        #expect(throws: SocketError.self) { try SocketAddress.unix(path: path).withRaw { _, _ in } }
    }
}
