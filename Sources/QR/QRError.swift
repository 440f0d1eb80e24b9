/// Why there is no QR code of a text.
package enum QRError: Error, Equatable {
    case empty
    case tooLong(bytes: Int)
    case failed(errno: CInt)
}

extension QRError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .empty: "there is no QR code of an empty text; give it one"
        case .tooLong(let bytes): "\(bytes) bytes are more than a QR code holds, which is 2953; shorten the text"
        case .failed(let errno): "libqrencode made no QR code (errno \(errno)); copy the text instead"
        }
    }
}
