import FoundationEssentials
import Glibc
import NIOCore
import NIOHPACK
import NIOHTTP2

/// Compares the clock of this host with that of a server of etcd.
struct EtcdClock: Sendable {
    /// The smallest difference that counts as a wrong clock. Certificates and displayed times bear more.
    static let tolerance = 5

    /// The times of the request and of its response on the clock of this host.
    let sentAt: Date
    let receivedAt: Date

    /// Compares the clocks.
    ///
    /// - Parameter date: The header `date`, which has whole seconds.
    /// - Returns: The seconds by which this host is ahead; nil within the tolerance, or for an unreadable date.
    func skew(to date: String) -> Int? {
        guard let server = Self.seconds(of: date) else { return nil }
        // The server wrote the date at some time between the request and its response.
        let (least, most) = (sentAt.timeIntervalSince1970 - server - 1, receivedAt.timeIntervalSince1970 - server)
        let difference = least > 0 ? least : min(most, 0)
        guard abs(difference) > Double(Self.tolerance), abs(difference) < 1e12 else { return nil }
        return Int(((least + most) / 2).rounded())
    }

    /// Parses the date of an HTTP header (IMF-fixdate of RFC 9110), such as `Sat, 28 Nov 2026 19:41:00 GMT`.
    private static func seconds(of date: String) -> Double? {
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let words = date.split(separator: " ")
        guard words.count == 6, words[5] == "GMT", let month = months.firstIndex(of: String(words[2])) else {
            return nil
        }
        let numbers = (words[1...1] + words[3...3] + words[4].split(separator: ":")).compactMap { Int32($0) }
        guard numbers.count == 5, (1970...9999).contains(numbers[1]) else { return nil }
        var parts = tm()
        (parts.tm_mday, parts.tm_mon, parts.tm_year) = (numbers[0], Int32(month), numbers[1] - 1900)
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[2], numbers[3], numbers[4])
        return Double(timegm(&parts))
    }
}

/// Sends one plain HTTP request over a stream, and completes a promise with the header `date` of its response; nil
/// without one.
///
/// The responses of gRPC have no date.
final class EtcdDateHandler: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTP2Frame.FramePayload

    private let authority: String
    private let promise: EventLoopPromise<String?>

    init(authority: String, promise: EventLoopPromise<String?>) {
        self.authority = authority
        self.promise = promise
    }

    func channelActive(context: ChannelHandlerContext) {
        let headers: HPACKHeaders = [
            ":method": "GET", ":scheme": "https", ":path": "/version", ":authority": authority,
        ]
        context.writeAndFlush(wrapOutboundOut(.headers(.init(headers: headers, endStream: true))), promise: nil)
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .headers(let payload) = unwrapInboundIn(data) else { return }
        promise.succeed(payload.headers.first(name: "date"))
    }

    func channelInactive(context: ChannelHandlerContext) {
        promise.succeed(nil)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { promise.succeed(nil) }
}
