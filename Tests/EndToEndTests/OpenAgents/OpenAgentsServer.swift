import TestSupport

/// An OpenAgents server made with the WebSocket library `websockets`, which checks every frame of its client.
///
/// Prints `head: NAME: VALUE` for each header of the request, `text: MESSAGE` for each message, and `closed: CODE` at the
/// end of a connection.
struct OpenAgentsServer {
    let program: Program
    let port: UInt16

    /// Starts a server whose behaviour is a key of `answers` in the script.
    init(_ mode: String = "good", in scratch: ScratchFolder) async throws {
        program = try await Program(
            PythonPeers.webSocketInterpreter(in: scratch),
            ["-c", Self.script, mode],
            in: scratch
        )
        let line = try await program.waitForLine("listening on ", within: .seconds(60))
        guard let port = line.split(separator: " ").last.flatMap({ UInt16($0) }) else {
            throw TestSupportError("“\(line)” is no port")
        }
        self.port = port
    }

    /// The messages that clients sent.
    var messages: [String] { program.output.filter { $0.hasPrefix("text: ") }.map { String($0.dropFirst(6)) } }

    private static let script = #"""
        import asyncio, json, sys
        from websockets.asyncio.server import serve
        mode = sys.argv[1]
        info = {'name': 'openagents-mac', 'title': 'OpenAgents macOS', 'version': '0.1.0'}
        good = {'jsonrpc': '2.0', 'id': '1', 'result': {
            'protocol_version': '0.2.2', 'agent_capabilities': {}, 'auth_methods': [], 'agent_info': info}}
        def changed(**members): return json.dumps({**good, **members})
        answers = {
            'good': json.dumps(good), 'slow': json.dumps(good), 'parts': json.dumps(good),
            'error': json.dumps({'jsonrpc': '2.0', 'id': '1', 'error': {'code': -32600, 'message': 'go away'}}),
            'number': changed(id=1), 'camel': changed(result={'protocolVersion': 1, 'agentCapabilities': {}}),
            'version': changed(result={'protocol_version': '1.0', 'agent_capabilities': {}}),
            'hello': json.dumps({'type': 'HelloAck', 'token': 'x'}), 'binary': json.dumps(good).encode(),
            'big': ' ' * 70_000, 'close': None, 'silent': None,
        }
        async def handle(socket):
            for name, value in socket.request.headers.raw_items(): print('head: %s: %s' % (name, value), flush=True)
            print('path:', socket.request.path, flush=True)
            try:
                async for message in socket:
                    assert isinstance(message, str)
                    print('text:', message, flush=True)
                    if mode == 'silent': continue
                    if mode == 'close': return await socket.close(1011)
                    if mode == 'slow': await asyncio.sleep(1)
                    if mode == 'parts':
                        await socket.send(json.dumps({'jsonrpc': '2.0', 'method': 'session/update', 'params': {}}))
                        await (await socket.ping())
                        print('ponged', flush=True)
                        text = answers[mode]
                        await socket.send([text[:10], text[10:50], text[50:]])
                    else:
                        await socket.send(answers[mode])
            finally:
                await socket.wait_closed()
                print('closed:', socket.close_code, flush=True)
        async def main():
            async with serve(handle, '127.0.0.1', 0, close_timeout=2) as server:
                print('listening on', server.sockets[0].getsockname()[1], flush=True)
                await asyncio.get_running_loop().create_future()
        asyncio.run(main())
        """#
}
