import Glibc
import SystemIO
import Testing

@Suite struct SocketAddressTests {
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
