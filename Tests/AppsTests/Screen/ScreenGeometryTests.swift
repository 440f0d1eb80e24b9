import Model
import Testing

@testable import Apps

/// An app chooses the numbers of its screen, so each of them may be an attack.
@Suite struct ScreenGeometryTests {
    private static let picture = (width: 1_179, height: 2_556)
    private static let corner = ScreenInput.Point(x: 1, y: 1)

    @Test(arguments: [1e-308, 1e308, -3, 0, .infinity, .nan])
    func `a scale that no screen has is ignored, and the coordinates stay inside the picture`(_ scale: Double) {
        let geometry = ScreenGeometry(picture: Self.picture, ScreenFacts(scale: scale), unit: .points)
        let point = geometry.point(Self.corner, whole: false)
        #expect(point == (1_178, 2_555))
    }

    @Test(arguments: ["1e308", "-1", "0", "100001", "1e-308"])
    func `a size that no screen has is ignored`(_ length: String) throws {
        let size = try JSON(parsing: #"{"width": \#(length), "height": 844}"#)
        #expect(ScreenFacts.Size(size) == nil)
    }

    @Test(arguments: [Int.max, Int.min, 0])
    func `an element of any size gives no scale and stops nothing`(_ length: Int) throws {
        let elements = try JSON(
            parsing: #"[{"frame": {"w": \#(length), "h": 1}}, {"frame": {"w": 393, "h": 852}}]"#
        )
        #expect(ScreenFacts.scale(of: Self.picture, elements: elements) == 3)
    }
}
