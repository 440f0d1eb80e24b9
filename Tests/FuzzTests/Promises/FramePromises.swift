@testable import Apps

/// Promises for WebSocket frames and lines of servers: how the bytes are split changes nothing, and the limits hold.
enum FramePromises {
    private static let limit = 300

    static func check(_ input: [UInt8]) throws(Violation) {
        let whole = frames([input])
        let single = frames(input.map { [$0] })
        try promise(
            "how the bytes are split changes no frame",
            whole.frames == single.frames && whole.error == single.error
        )
        try promise("a frame has a limit", whole.frames.allSatisfy { $0.payload.count <= limit })
        let sizes = whole.frames.map { $0.payload.count + 2 }
        try promise("frames are a part of what came", sizes.reduce(0, +) <= input.count)

        let sent = WebSocketFrame.masked(.binary, input)
        guard input.count <= limit else { return }
        let own = frames([sent]).frames
        try promise(
            "a frame is what was sent",
            own.count == 1 && own[0].isMasked && own[0].payload.count == input.count
        )
    }

    static func checkLines(_ input: [UInt8]) throws(Violation) {
        let whole = lines([input])
        let single = lines(input.map { [$0] })
        try promise("how the bytes are split changes no line", whole == single)
        try promise("a line has a limit, no line break and no blank ends", whole.allSatisfy { isLine($0) })
    }

    private static func isLine(_ line: [UInt8]) -> Bool {
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0D]
        guard let first = line.first, let last = line.last else { return false }
        return line.count <= limit && !line.contains(0x0A) && !blanks.contains(first) && !blanks.contains(last)
    }

    private static func frames(_ chunks: [[UInt8]]) -> (frames: [WebSocketFrame], error: ExchangeError?) {
        var decoder = WebSocketDecoder(limit: limit)
        var frames: [WebSocketFrame] = []
        do throws(ExchangeError) {
            for chunk in chunks {
                decoder.append(chunk)
                while let frame = try decoder.next() { frames.append(frame) }
            }
            return (frames, nil)
        } catch { return (frames, error) }
    }

    /// Returns the lines up to the first that is too long.
    private static func lines(_ chunks: [[UInt8]]) -> [[UInt8]] {
        var decoder = LineDecoder(limit: limit)
        var lines: [[UInt8]] = []
        for chunk in chunks {
            decoder.append(chunk)
            while let event = decoder.next() {
                guard case .line(let line) = event else { return lines }
                lines.append(Array(line))
            }
        }
        return lines
    }
}
