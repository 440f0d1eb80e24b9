import Glibc
import SystemIO
import Testing

@testable import Tunnels

@Suite struct BrowserGuardTests {
    private let browserGuard = BrowserGuard(address: .ipv4(0x7F00_0001, port: 8_080))

    private func decision(_ bytes: [UInt8], isComplete: Bool = false) -> BrowserGuard.Decision {
        var browserGuard = browserGuard
        return bytes.withUnsafeBytes { browserGuard.evaluate($0, isComplete: isComplete) }
    }

    private func decision(_ text: String) -> BrowserGuard.Decision { decision(Array(text.utf8)) }

    /// A request with these header lines.
    private func request(_ lines: String...) -> String {
        (["GET / HTTP/1.1"] + lines + ["", ""]).joined(separator: "\r\n")
    }

    @Test(arguments: [
        "localhost", "LOCALHOST", "localhost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:65535", "localhost:",
        "  localhost:80\t",
    ])
    func `a request for a local host name passes`(host: String) {
        #expect(decision(request("Accept: */*", "Host: \(host)", "User-Agent: curl/8")) == .passes)
    }

    @Test(arguments: [
        "evil.example", "evil.example:8080", "localhost.evil.example", "localhost.", "localhost6", "test.local", "",
        "127.0.0.1.evil.example", "127.1", "2130706433", "0x7f.0.0.1", "0", "0.0.0.0", "::1", "[::1].evil", "[::2]",
        "localhost:80:80", "localhost:x", "localhost:99999", "localhost:-1", "localhost, evil.example",
        "user@localhost",
        "localhost@evil.example", "127.0.0.2", "lócalhost", "local%68ost", "[localhost]", "localhost/", "\\localhost",
    ])
    func `a request for any other host is rejected`(host: String) {
        #expect(decision(request("Host: \(host)")) == .refused(.foreignHost))
    }

    @Test(arguments: [
        "http://evil.example", "null", "", "http://localhost:8080", "http://127.0.0.1:8080", " ", "file://",
    ])
    func `a request with an Origin header is rejected`(origin: String) {
        #expect(decision(request("Host: localhost", "Origin: \(origin)")) == .refused(.origin))
        #expect(decision(request("oRIGIN:\(origin)", "Host: localhost")) == .refused(.origin))
    }

    @Test(arguments: [("none", true), ("same-origin", true), ("cross-site", false), ("same-site", false), ("", false)])
    func `a cross-site request is rejected by its Sec-Fetch-Site header`(site: String, passes: Bool) {
        let decision = decision(request("Host: localhost", "Sec-Fetch-Site: \(site)"))

        #expect(decision == (passes ? .passes : .refused(.crossSite)))
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nhost: evil.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", "GET / HTTP/1.1\r\nHost\t: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n Origin: x\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: localhost\r\n\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\nX: a\r\n\tb\r\n\r\n",
        "GET / HTTP/1.1\nHost: localhost\n\n", "GET / HTTP/1.1\r\nHost: localhost\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n\n", "GET / HTTP/1.1\r\nX: a\rOrigin: b\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\u{0}.evil.example\r\n\r\n", "GET / HTTP/1.1\r\nX\u{0}: a\r\n\r\n",
        "GET / HTTP/1.1\r\n: a\r\n\r\n", "FOO\t/\tHTTP/1.1\r\n\r\n", "FOO / HTTP/1.1\nHost: localhost\n\n",
        "GET / HTTP/1.1\r\nnonsense\r\n\r\n", "GET / HTTP/1.1\r\nX(): a\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1 \r\n\r\n", "GET\t/\tHTTP/1.1\r\n\r\n", "GET / /x HTTP/1.1\r\n\r\n", "GET / http/1.1\r\n\r\n",
        "GET / HTTP/1.10\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "GET / HTTP/1.x\r\n\r\n", "GET  HTTP/1.1\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", " GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET\u{B}/\u{C}HTTP/1.1\r\n\r\n", "GET / HTTP/1.1 x\r\nHost: localhost\r\n\r\n",
        "GET http://localhost/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "GET http://localhost:81/ HTTP/1.1\r\nHost: localhost:80\r\n\r\n",
    ])
    func `an ambiguous request is rejected`(head: String) { #expect(decision(head) == .refused(.ambiguous)) }

    @Test(arguments: [
        ("GET http://localhost:80/x HTTP/1.1\r\nHost: LocalHost:80\r\n\r\n", BrowserGuard.Decision.passes),
        ("GET http://[::1]?q=/ HTTP/1.1\r\nHost: [::1]\r\n\r\n", .passes),
        ("GET http://localhost HTTP/1.0\r\n\r\n", .passes),
        ("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", .passes),
        ("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", .refused(.foreignHost)),
        ("GET http://localhost@evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", .refused(.foreignHost)),
        ("GET http://evil.example/ HTTP/1.0\r\n\r\n", .refused(.foreignHost)),
        ("GET evil HTTP/1.1\r\nHost: localhost\r\n\r\n", .refused(.foreignHost)),
        ("GET http:/localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", .refused(.foreignHost)),
        ("CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", .refused(.foreignHost)),
        ("CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n", .passes),
    ])
    func `a request target with a host must match the local Host header`(head: String, expected: BrowserGuard.Decision)
    { #expect(decision(head) == expected) }

    @Test(arguments: [
        ("GET / HTTP/1.0\r\n\r\n", BrowserGuard.Decision.passes),
        ("GET / HTTP/1.0\r\nOrigin: null\r\n\r\n", .refused(.origin)),
        ("GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n", .refused(.foreignHost)),
        ("GET / HTTP/1.1\r\nAccept: */*\r\n\r\n", .refused(.foreignHost)),
        ("FOO / HTTP/1.1\r\nHost: evil.example\r\n\r\n", .refused(.foreignHost)),
        ("patch / HTTP/1.1\r\nHost: evil.example\r\n\r\n", .refused(.foreignHost)),
        ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\nOrigin: x\r\n\r\n", .passes),
    ])
    func `the guard checks requests of every method and HTTP/1 version`(head: String, expected: BrowserGuard.Decision) {
        #expect(decision(head) == expected)
    }

    @Test(
        arguments: [
            [0x16, 0x03, 0x01, 0x02, 0x00], Array("SSH-2.0-OpenSSH_9.2\r\n".utf8),
            Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8), Array("CNXN\u{0}\u{0}\u{0}\u{1}".utf8), [0], [0xFF],
            [1, 2, 3],
            Array("{\"jsonrpc\":\"2.0\"}".utf8), Array("PING\r\n".utf8), Array("*1\r\n$4\r\nPING\r\n".utf8),
            Array("GET key\r\n".utf8), Array("EHLO me\r\n".utf8), Array("GET /\r\n".utf8), Array("<xml".utf8),
            Array("OPTIONS rtsp://x RTSP/1.0\r\n".utf8), Array("foo \u{1}".utf8), Array("foo \u{1} HTTP/1.1\r\n".utf8),
            Array("HTTP/1.1 200 OK\r\n".utf8), Array("GET /\u{0} HTTP/1.1\r\n".utf8), Array("GET \u{1}".utf8),
            Array("foo HTTP/1.1\r\n".utf8), Array("foo a HTTP/1.1 b\r\n".utf8), Array("foo a HTTP/2.0\r\n".utf8),
            Array("foo a http/ b\r\n".utf8), Array(repeating: UInt8(ascii: "a"), count: BrowserGuard.limit),
            Array(repeating: UInt8(ascii: "\n"), count: BrowserGuard.limit),
            Array("foo ".utf8) + Array(repeating: UInt8(ascii: "a"), count: BrowserGuard.limit),
            Array("GET ".utf8) + Array(repeating: UInt8(ascii: "a"), count: BrowserGuard.limit),
        ] as [[UInt8]]
    )
    func `bytes that are not HTTP pass as soon as the guard can tell`(bytes: [UInt8]) {
        #expect(decision(bytes) == .passes)
    }

    @Test(arguments: [
        ("", RequestLineStage.silent), ("\r\n", .possible), ("JDWP-Handshake", .possible), ("hello", .possible),
        ("FOO /x", .possible), ("G", .likely), ("DELET", .likely), ("GET", .likely), ("GET ", .likely),
        ("GET key", .likely), ("GET /", .begun), ("FOO / HTTP/", .possible), ("FOO / HTTP/1.", .begun),
        ("foo HTTP/1.", .possible), ("GET / HTTP/1.1", .begun), ("GET / HTTP/1.1\r\nHost: localhost\r\n", .begun),
    ])
    func `an incomplete request line is undecided at the matching stage`(text: String, stage: RequestLineStage) {
        #expect(decision(text) == .undecided(stage))
        #expect(decision(Array(text.utf8), isComplete: true) == (stage == .begun ? .refused(.unfinished) : .passes))
    }

    @Test func `a head of 16 KiB passes, and a longer one is rejected`() {
        let empty = request("Host: localhost", "X: ").utf8.count
        func head(_ count: Int) -> String {
            request("Host: localhost", "X: " + String(repeating: "x", count: count - empty))
        }

        #expect(decision(head(BrowserGuard.limit)) == .passes)
        #expect(decision(head(BrowserGuard.limit + 1)) == .refused(.tooLong))
        #expect(decision("FOO /" + String(repeating: "x", count: 20_000)) == .refused(.tooLong))
    }

    @Test func `the cost of a head that arrives byte by byte is proportional to its length`() {
        func cost(_ count: Int) -> Int {
            let head = Array(request("Host: localhost").utf8.dropLast(2)) + Array("X: ".utf8)
            let bytes = head + Array(repeating: UInt8(ascii: "x"), count: count - head.count)
            var reading = browserGuard
            let before = processorTime()
            for length in 1...bytes.count {
                let now = bytes.withUnsafeBytes { reading.evaluate(.init(rebasing: $0[..<length])) }
                if case .undecided = now { continue }
                Issue.record("\(now) after \(length) bytes")
                break
            }
            return processorTime() - before
        }
        _ = cost(1_000)

        // For 16 times the bytes, the cost is 16 times if each byte is examined once, and 256 times if each call starts
        // over.
        #expect(cost(16_000) < 64 * max(cost(1_000), 20))
    }

    /// The processor time of this thread in microseconds.
    private func processorTime() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
    }

    @Test(arguments: [("192.168.1.5:8080", true), ("192.168.1.6", false), ("evil.example", false), ("localhost", true)])
    func `the address that the client connected to is a local name`(host: String, passes: Bool) {
        let browserGuard = BrowserGuard(address: .ipv4(0xC0A8_0105, port: 8_080))
        var fresh = browserGuard
        let decision = Array(request("Host: \(host)").utf8).withUnsafeBytes { fresh.evaluate($0) }

        #expect(decision == (passes ? .passes : .refused(.foreignHost)))
    }

    @Test func `every notation of the connected IPv6 address is a local name`() {
        let browserGuard = BrowserGuard(address: .ipv6(0xFD00 << 112 | 1, port: 1, scope: 0))
        for (host, passes) in [("[FD00:0::1]:80", true), ("[fd00::2]", false), ("fd00::1", false)] {
            var fresh = browserGuard
            let decision = Array(request("Host: \(host)").utf8).withUnsafeBytes { fresh.evaluate($0) }
            #expect(decision == (passes ? .passes : .refused(.foreignHost)), "\(host)")
        }
    }

    @Test func `a decision is final and does not depend on packet boundaries`() {
        var heads = [
            request("Host: localhost", "Accept: */*"), request("Host: evil.example"), request("Host: a", "Host: b"),
            request("Host: localhost", "Origin: null"), request("Host : localhost"), request("X: y"),
            "GET / HTTP/1.0\r\n\r\nOrigin: x", "\r\nGET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\nGET / HTTP/1.1\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "FOO / HTTP/1.1\r\nHost: evil\r\n\r\n",
            "GET key\r\nGET / HTTP/1.1\r\n\r\n",
            "GET http://evil/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /\u{0} HTTP/1.1\r\n\r\n",
        ].map { Array($0.utf8) }
        // The same requests with one random byte changed.
        var state: UInt64 = 42
        for _ in 0..<500 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            var head = heads[Int(state >> 33) % 14]
            head[Int(state >> 40) % head.count] = UInt8(truncatingIfNeeded: state >> 20)
            heads.append(head)
        }
        for head in heads {
            let final = decision(head)
            var decided: BrowserGuard.Decision?
            var reading = browserGuard
            for count in 0...head.count {
                let now = decision(Array(head.prefix(count)))
                #expect(head.withUnsafeBytes { reading.evaluate(.init(rebasing: $0[..<count])) } == now)
                if let decided {
                    #expect(
                        now == decided,
                        "after \(count) bytes of \(String(decoding: head, as: UTF8.self).debugDescription)"
                    )
                } else if case .undecided = now {
                    continue
                } else {
                    decided = now
                }
            }
            #expect(decided ?? final == final)
        }
    }

    @Test func `the 403 response is complete HTTP, with the reason and a hint`() throws {
        let text = String(decoding: BrowserGuard.Refusal.origin.response, as: UTF8.self)
        let body = try #require(text.split(separator: "\r\n\r\n").last)

        #expect(text.hasPrefix("HTTP/1.1 403 Forbidden\r\n"))
        #expect(text.contains("\r\nContent-Length: \(body.utf8.count)\r\n"))
        #expect(body.contains("Origin") && body.contains("--allow-browsers"))
    }
}
