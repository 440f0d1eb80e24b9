import TestSupport

/// python-zeroconf on a host: an mDNS stack that is independent of Avahi.
struct ZeroconfPeer {
    let program: Program

    /// Publishes services of one type at 127.0.0.1 until it is stopped; several are named `name-0`, `name-1`…
    ///
    /// With `renames`, a name that exists becomes `name-2`, and the type may have an underscore.
    static func publishing(
        _ name: String,
        _ type: String,
        _ port: UInt16,
        _ txt: [String] = [],
        count: Int = 1,
        renames: Bool = false,
        on host: AvahiHost,
        in scratch: ScratchFolder
    ) async throws -> ZeroconfPeer {
        let script = """
            import asyncio, socket, sys
            from zeroconf import IPVersion, ServiceInfo
            from zeroconf.asyncio import AsyncZeroconf
            name, type, port, count, txt = sys.argv[1], sys.argv[2] + '.local.', int(sys.argv[3]), int(sys.argv[4]), sys.argv[6:]
            renames = sys.argv[5] == 'true'
            data = b''.join(bytes([len(t.encode())]) + t.encode() for t in txt)
            async def main():
                zeroconf = AsyncZeroconf(interfaces=['127.0.0.1'], ip_version=IPVersion.V4Only)
                names = [name] if count == 1 else ['%s-%d' % (name, i) for i in range(count)]
                infos = [ServiceInfo(type, n + '.' + type, port=port, properties=data, server='peer.local.',
                                     addresses=[socket.inet_aton('127.0.0.1')]) for n in names]
                for info in infos:
                    # A burst would overflow the socket buffers of whoever listens.
                    await asyncio.sleep(0.002)
                    await zeroconf.async_register_service(info, allow_name_change=renames,
                                                          cooperating_responders=not renames, strict=not renames)
                print('registered', *(info.name for info in infos), flush=True)
                await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
                await zeroconf.async_unregister_all_services()
                await zeroconf.async_close()
            asyncio.run(main())
            """
        let python = try await PythonPeers.interpreter(in: scratch)
        let program = try await host.start(
            python,
            ["-c", script, name, type, "\(port)", "\(count)", "\(renames)"] + txt,
            input: .pipe
        )
        try await program.waitForLine("registered", within: .seconds(60))
        return ZeroconfPeer(program: program)
    }

    /// Prints `Added NAME PORT TXT-IN-HEX`, `Updated …` and `Removed NAME`.
    static func browsing(_ type: String, on host: AvahiHost, in scratch: ScratchFolder) async throws -> ZeroconfPeer {
        let script = """
            import sys
            from zeroconf import IPVersion, ServiceBrowser, Zeroconf
            type = sys.argv[1] + '.local.'
            def say(zeroconf, service_type, name, state_change):
                info = None if state_change.name == 'Removed' else zeroconf.get_service_info(service_type, name)
                print(state_change.name, name[:-len(type) - 1], *((info.port, info.text.hex()) if info else ()), flush=True)
            zeroconf = Zeroconf(interfaces=['127.0.0.1'], ip_version=IPVersion.V4Only)
            browser = ServiceBrowser(zeroconf, type, handlers=[say])
            print('browsing', flush=True)
            sys.stdin.read()
            zeroconf.close()
            """
        let python = try await PythonPeers.interpreter(in: scratch)
        let program = try await host.start(python, ["-c", script, type], input: .pipe)
        try await program.waitForLine("browsing", within: .seconds(60))
        return ZeroconfPeer(program: program)
    }

    /// Stops with a goodbye packet.
    func leave() async throws {
        program.closeInput()
        _ = try await program.exitStatus()
    }

    /// TXT strings in wire format, in hexadecimal.
    static func hex(_ items: [String]) -> String {
        items.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
            .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
