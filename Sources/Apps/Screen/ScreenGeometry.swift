import Model

/// The size of a screen in the unit of a tool's coordinates.
struct ScreenGeometry: Hashable, Sendable {
    let width: Double
    let height: Double

    /// Returns the coordinate of a fraction of the picture. The last point is inside of the screen.
    func point(_ fraction: ScreenInput.Point, whole: Bool) -> (x: Double, y: Double) {
        func coordinate(_ fraction: Double, _ length: Double) -> Double {
            let inside = min(fraction * length, max(0, length - 1))
            return whole ? inside.rounded(.down) : (inside * 100).rounded() / 100
        }
        return (coordinate(fraction.x, width), coordinate(fraction.y, height))
    }

    /// Returns the geometry for a picture and the facts that the app reports.
    ///
    /// - Parameters:
    ///   - picture: The size of the picture in pixels.
    ///   - facts: The facts; absent ones are nil.
    ///   - unit: The unit in the declaration of the tool.
    init(picture: (width: Int, height: Int), _ facts: ScreenFacts, unit: ScreenTools.Unit?) {
        let (width, height) = (Double(picture.width), Double(picture.height))
        // A reported size is in the unit of the coordinates. It may be that of the other orientation.
        if let size = facts.size {
            let isTurned = (size.width > size.height) != (width > height) && width != height
            self.init(
                width: isTurned ? size.height : size.width,
                height: isTurned ? size.width : size.height
            )
        } else if unit == .pixels || facts.takesPixels {
            self.init(width: width, height: height)
        } else if let scale = facts.scale, Self.scales.contains(scale) {
            self.init(width: width / scale, height: height / scale)
        } else {
            self.init(width: width, height: height)
        }
    }

    /// The scales that an app may report. Others are ignored, because their coordinates would be no finite numbers.
    private static let scales = 0.1...16

    private init(width: Double, height: Double) { (self.width, self.height) = (width, height) }
}

/// The facts that an app reports of its screen.
struct ScreenFacts: Hashable, Sendable {
    struct Size: Hashable, Sendable {
        /// The lengths that an app may report, far above any screen.
        static let lengths = 1.0...100_000

        let width: Double
        let height: Double

        init?(_ json: JSON?) {
            guard let width = json?["width"]?.number?.double, let height = json?["height"]?.number?.double,
                Self.lengths.contains(width), Self.lengths.contains(height)
            else { return nil }
            (self.width, self.height) = (width, height)
        }
    }

    /// The size of the screen in points.
    var size: Size?
    /// The pixels of a point.
    var scale: Double?
    /// True for AppReveal on Android, which reports a scale, but takes pixels.
    var takesPixels = false

    /// Finds the scale by the frames of elements (DebugBridge, whose frames are `{"x", "y", "w", "h"}`): the frame of a
    /// window is the picture divided by 1, 2 or 3.
    static func scale(of picture: (width: Int, height: Int), elements: JSON) -> Double? {
        let list = elements.array ?? elements["elements"]?.array ?? []
        for element in list {
            let frame = element["frame"]
            guard let width = frame?["w"]?.number?.double, let height = frame?["h"]?.number?.double else { continue }
            // The app chooses the frame, so this is no arithmetic of integers, which would trap.
            for scale in [1.0, 2, 3]
            where abs(width * scale - Double(picture.width)) < scale
                && abs(height * scale - Double(picture.height)) < scale
            {
                return scale
            }
        }
        return nil
    }

    /// Guesses the scale of an iOS screen by its shorter side in pixels: phones of 1,080 to 1,320 pixels have 3.
    static func scaleOfIOS(_ picture: (width: Int, height: Int)) -> Double {
        let short = min(picture.width, picture.height)
        if (1_080...1_320).contains(short) { return 3 }
        return short >= 640 ? 2 : 1
    }
}

/// The input of a person on a screen. Coordinates are fractions of the picture.
package enum ScreenInput: Hashable, Sendable {
    package struct Point: Hashable, Sendable, Codable {
        package let x: Double
        package let y: Double
    }

    case tap(Point)
    case swipe(from: Point, to: Point, milliseconds: Int)
    /// A text. The characters of `ScreenTools.keys` press these keys.
    case type(String)
}
