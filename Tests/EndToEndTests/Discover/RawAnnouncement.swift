import TestSupport

/// Hand-made mDNS responses that no mDNS stack would send.
enum RawAnnouncement {
    /// Sends a Python list of `(labels, type, ttl, data)`; `name(…)`, `srv(…)` and `txt(…)` make data.
    static func send(_ records: String, on host: AvahiHost) async throws {
        try await host.run("python3", ["-c", prelude + "\nsend(\(records))"])
    }

    /// Announces one service on each of `count` hosts: `crowd-0`, `crowd-1`, …
    static func crowd(_ count: Int, on host: AvahiHost) async throws {
        let script = """
            for number in range(\(count)):
                instance, computer = ('crowd-%d' % number, '_debug', '_tcp', 'local'), ('crowdhost-%d' % number, 'local')
                send([(('_debug', '_tcp', 'local'), PTR, 120, name(*instance)), (instance, SRV, 120, srv(7, *computer)),
                      (instance, TXT, 120, txt('v=1')), (computer, A, 120, bytes([127, 0, 0, 1]))])
                # A burst would overflow the socket buffers of avahi-daemon.
                time.sleep(0.002)
            """
        try await host.run("python3", ["-c", prelude + "\n" + script])
    }

    /// Announces one service of `_debug._tcp` with all its records, from the host's address.
    static func service(_ instance: String, at address: String, on host: AvahiHost) async throws {
        let bytes = address.split(separator: ".").joined(separator: ", ")
        let script = """
            s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('\(address)'))
            instance = ('\(instance)', '_debug', '_tcp', 'local')
            send([(('_debug', '_tcp', 'local'), PTR, 120, name(*instance)), (instance, SRV, 120, srv(4711, 'raw', 'local')),
                  (instance, TXT, 120, txt('v=1')), (('raw', 'local'), A, 120, bytes([\(bytes)]))])
            """
        try await host.run("python3", ["-c", prelude + "\n" + script])
    }

    /// Announces a Dart VM service as Flutter's tool does, with the loopback addresses, on the interface of `address`.
    /// Answers questions about the service until the program ends.
    static func flutterToolResponder(
        port: UInt16,
        code: String,
        from address: String,
        on host: AvahiHost
    ) async throws -> Program {
        try await flutterToolResponder(flutterTool(port, code, ipv4Sockets(address)), port, on: host)
    }

    /// The same over IPv6, on the interface with this name.
    static func flutterToolResponder(
        port: UInt16,
        code: String,
        overIPv6 interface: String,
        on host: AvahiHost
    ) async throws -> Program {
        try await flutterToolResponder(flutterTool(port, code, ipv6Sockets(interface)), port, on: host)
    }

    private static func flutterToolResponder(
        _ announcement: String,
        _ port: UInt16,
        on host: AvahiHost
    ) async throws -> Program {
        let script = """
            asked = listen()
            print('answering', flush=True)
            while True:
                query, sender = asked.recvfrom(9000)
                # A unicast answer to a question from another port than 5353 (RFC 6762, section 6.7).
                if query[2] & 0x80 or sender[1] == 5353 or name(*instance) not in query: continue
                data = srv(\(port), 'flutter', 'local')
                asked.sendto(query[:2] + struct.pack('>HHHHH', 0x8400, 0, 1, 0, 0) + name(*instance)
                             + struct.pack('>HHIH', SRV, 1, 120, len(data)) + data, sender)
                print('answered', sender[0], flush=True)
            """
        let responder = try await host.start("python3", ["-c", announcement + "\n" + script])
        try await responder.waitForLine("answering")
        return responder
    }

    /// Makes `s` send on the interface of an address, and `listen` return a member of the group.
    private static func ipv4Sockets(_ address: String) -> String {
        """
        s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('\(address)'))
        def listen():
            asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            asked.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            asked.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            asked.bind(('', 5353))
            asked.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                             socket.inet_aton('224.0.0.251') + socket.inet_aton('\(address)'))
            return asked
        """
    }

    /// The same for IPv6.
    private static func ipv6Sockets(_ interface: String) -> String {
        """
        link = socket.if_nametoindex('\(interface)')
        def listen():
            asked = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            asked.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            asked.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            asked.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            asked.bind(('::', 5353))
            asked.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
                             socket.inet_pton(socket.AF_INET6, 'ff02::fb') + struct.pack('=I', link))
            return asked
        s, group = listen(), ('ff02::fb', 5353, 0, link)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, link)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        """
    }

    private static func flutterTool(_ port: UInt16, _ code: String, _ sockets: String) -> String {
        [prelude, sockets].joined(separator: "\n") + """

            service = ('_flutter_devices', '_tcp', 'local')
            instance = ('Flutter Tools on far',) + service
            send([(service, PTR, 120, name(*instance)), (instance, SRV, 120, srv(\(port), 'flutter', 'local')),
                  (instance, TXT, 120, txt('project_name=shop', 'ws_uri=ws://127.0.0.1:\(port)/\(code)/ws')),
                  (('flutter', 'local'), A, 120, bytes([127, 0, 0, 1])), (('flutter', 'local'), 28, 120, bytes(15) + b'\\x01')])
            """
    }

    /// Announces `count` apps at one address, each with all its records and its own host name.
    ///
    /// `sender` is the address of the host if the apps claim the address of another one.
    static func apps(_ count: Int, at address: String, on host: AvahiHost, sender: String? = nil) async throws {
        let bytes = address.split(separator: ".").joined(separator: ", ")
        let script = """
            s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('\(sender ?? address)'))
            for number in range(\(count)):
                instance, computer = ('app-%d' % number, '_debug', '_tcp', 'local'), ('host-%d' % number, 'local')
                send([(('_debug', '_tcp', 'local'), PTR, 120, name(*instance)), (instance, SRV, 120, srv(2000 + number, *computer)),
                      (instance, TXT, 120, txt('v=1')), (computer, A, 120, bytes([\(bytes)]))])
                time.sleep(0.002)
            """
        try await host.run("python3", ["-c", prelude + "\n" + script])
    }

    /// Announces unresolvable names of `_debug._tcp` at a fixed rate per second from the host's address. Returns when
    /// the flood has begun.
    ///
    /// The flood continues until the program ends.
    static func flood(
        _ count: Int,
        perSecond rate: Int,
        from address: String,
        on host: AvahiHost
    ) async throws -> Program {
        let script = """
            s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('\(address)'))
            start = time.monotonic()
            for number in range(0, \(count), 10):
                send([(('_debug', '_tcp', 'local'), PTR, 4500, name('flood-%d' % n, '_debug', '_tcp', 'local'))
                      for n in range(number, number + 10)])
                if number % 1000 == 0: print('sent', number, flush=True)
                time.sleep(max(0, start + number / \(rate) - time.monotonic()))
            print('sent all', flush=True)
            """
        let flood = try await host.start("python3", ["-c", prelude + "\n" + script])
        try await flood.waitForLine("sent 0")
        return flood
    }

    private static let prelude = """
        import socket, struct, time
        PTR, TXT, SRV, A = 12, 16, 33, 1
        def label(text):
            data = text if isinstance(text, bytes) else text.encode()
            return bytes([len(data)]) + data
        def name(*labels): return b''.join(map(label, labels)) + b'\\0'
        def srv(port, *host): return struct.pack('>HHH', 0, 0, port) + name(*host)
        def txt(*items): return b''.join(map(label, items))
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(('', 5353))
        s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('127.0.0.1'))
        s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
        group = ('224.0.0.251', 5353)
        def send(records):
            packet = struct.pack('>HHHHHH', 0, 0x8400, 0, len(records), 0, 0)
            for labels, kind, ttl, data in records:
                packet += name(*labels)
                packet += struct.pack('>HHIH', kind, 1 if kind == PTR else 0x8001, ttl, len(data)) + data
            s.sendto(packet, group)
        """

    /// Sends responses with false counts, lengths and compressed names, and noise that is the same in every run.
    ///
    /// Leaves out packets that crash Debian's avahi-daemon (CNAME, avahi/avahi#501), because the test is about Avahi's
    /// clients.
    static func sendMalformed(on host: AvahiHost) async throws {
        let script = """
            import random, socket, struct
            random.seed(1)
            def head(flags=0x8400, answers=1): return struct.pack('>HHHHHH', 0, flags, 0, answers, 0, 0)
            debug = b'\\x06_debug\\x04_tcp\\x05local\\x00'
            def record(name, kind, data, length=None, ttl=120):
                return name + struct.pack('>HHIH', kind, 0x8001, ttl, len(data) if length is None else length) + data
            instance = b'\\x03bad' + debug
            packets = [
                b'', b'\\0', head()[:5], head(answers=0xffff), head() + debug, head() + b'\\xc0\\x0c',
                head() + b'\\xc0\\xff' + bytes(10), head() + b'\\x3f' + b'a' * 10, head() + b'\\xff' * 300,
                head() + record(debug, 12, b'\\xc0\\x0c'), head() + record(debug, 12, b'\\xc0', 2),
                head() + record(debug, 12, instance, 0xffff), head() + record(debug, 12, b''),
                head() + record(instance, 33, b'\\0\\0\\0'), head() + record(instance, 33, bytes(6)),
                head() + record(instance, 16, b'\\xffabc'), head() + record(instance, 16, b''),
                head() + record(instance, 1, b'\\x7f\\0\\0'), head() + record(instance, 28, bytes(4)),
                head(answers=9) + record(debug, 12, instance) + record(instance, 33, bytes(6) + b'\\xc0\\x0c'),
                head() + record(b'\\x3f' + b'x' * 63 + (b'\\x3f' + b'y' * 63) * 4 + b'\\0', 12, instance),
                *(head(answers=random.randrange(5)) + random.randbytes(random.randrange(200)) for _ in range(200)),
            ]
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            s.bind(('', 5353))
            s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('127.0.0.1'))
            s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
            for packet in packets: s.sendto(packet, ('224.0.0.251', 5353))
            """
        try await host.run("python3", ["-c", script])
    }

    /// The packet of AppReveal's Flutter responder: the instance name is split at the dots of the bundle identifier.
    static func flutter(port: UInt16, ttl: Int = 120) -> String {
        let instance = "'AppReveal-com', 'example', 'flutter', '_appreveal', '_tcp', 'local'"
        return """
            [(('_appreveal', '_tcp', 'local'), PTR, \(ttl), name(\(instance))),
             ((\(instance)), SRV, \(ttl), srv(\(port), 'flutterphone', 'local')),
             ((\(instance)), TXT, \(ttl), txt('bundleId=com.example.flutter', 'version=1.0')),
             (('flutterphone', 'local'), A, \(ttl), bytes([127, 0, 0, 1]))]
            """
    }

    /// A well-formed advert.
    static func service(_ instance: String, port: UInt16, txt: String = "txt('v=1')") -> String {
        let name = "\(instance), '_debug', '_tcp', 'local'"
        return """
            [(('_debug', '_tcp', 'local'), PTR, 120, name(\(name))),
             ((\(name)), SRV, 120, srv(\(port), 'rawphone', 'local')),
             ((\(name)), TXT, 120, \(txt)),
             (('rawphone', 'local'), A, 120, bytes([127, 0, 0, 1]))]
            """
    }
}
