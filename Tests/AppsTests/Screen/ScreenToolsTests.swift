import AccessControl
import Model
import Testing

@testable import Apps

@Suite struct ScreenToolsTests {
    private static func tool(_ name: String, _ properties: JSONObject = [:], required: [JSON] = [], text: String = "")
        -> JSONObject
    {
        [
            "name": .string(name), "description": .string(text),
            "inputSchema": ["type": "object", "properties": .object(properties), "required": .array(required)],
        ]
    }

    private static let number: JSON = ["type": "number"]

    private static func shipped(_ name: String) throws -> ScreenTools {
        let profile = try #require(try Profile.allShipped().first { $0.kind.text == name })
        return ScreenTools(profile.tools.compactMap(\.json.object))
    }

    @Test func `the tools of AppReveal are found, and scrolling is no swipe`() {
        let tools = ScreenTools([
            Self.tool("screenshot", ["format": ["type": "string"], "element_id": ["type": "string"]]),
            Self.tool(
                "tap_point",
                ["x": Self.number, "y": Self.number, "window_id": ["type": "string"]],
                required: ["x", "y"],
                text: "Tap at specific UIKit logical-point coordinates (NOT device pixels)."
            ),
            Self.tool("type_text", ["text": ["type": "string"], "element_id": ["type": "string"]], required: ["text"]),
            Self.tool("scroll", ["direction": ["type": "string"]], required: ["direction"]),
        ])

        #expect(tools.screenshot?.name == "screenshot" && tools.tap?.name == "tap_point" && tools.tap?.unit == .points)
        #expect(tools.type?.name == "type_text" && tools.swipe == nil)
        #expect(
            tools.limits == [
                "no keys: type_text inserts text, so Backspace, Tab, Delete and the arrow keys do nothing",
                "no swipes: the app has no tool to swipe between points; scroll has directions only",
            ]
        )
    }

    @Test func `a tool of the same name with other arguments is another tool`() {
        let tools = ScreenTools([
            Self.tool("screenshot", ["device": ["type": "string"]], required: ["device"]),
            Self.tool("tap", ["element": ["type": "string"]], required: ["element"]),
            Self.tool(
                "type",
                ["element": ["type": "string"], "text": ["type": "string"]],
                required: ["element", "text"]
            ),
            Self.tool("swipe", ["direction": ["type": "string"]]),
        ])

        #expect(tools.screenshot == nil && tools.tap == nil && tools.type == nil && tools.swipe == nil)
        #expect(tools.limits.count == 4 && tools.limits[2] == "no typing: type needs element")
    }

    @Test func `the tools of the shipped profiles are found`() throws {
        let bridge = try Self.shipped("debugbridge")
        #expect(
            bridge.limits == ["no keys: type inserts text, so Backspace, Tab, Delete and the arrow keys do nothing"]
        )
        #expect(bridge.swipe?.arguments.from.x == "from_x")
        let kit = try Self.shipped("devicekit")
        #expect(kit.keys == [.editing])
        #expect(kit.limits == ["not all keys: type does not press Delete and the arrow keys"])
        #expect(kit.swipe?.arguments.to.y == "y2" && kit.swipe?.tool.isWhole == true)
        let driver = try Self.shipped("webdriveragent")
        #expect(driver.tap?.name == "tap" && driver.swipe?.tool.name == "drag" && driver.windowSize != nil)
        #expect(driver.type?.name == "type_text" && driver.keys == [.editing, .delete])
        #expect(driver.limits == ["not all keys: type_text does not press the arrow keys"])
        let debug = try Self.shipped("app-debug")
        #expect(debug.screenshot != nil && debug.tap == nil && debug.limits.count == 3)
        #expect(debug.limits[0].contains("activate needs the identifier"))
    }

    private static func point(
        _ x: Double,
        _ y: Double,
        _ picture: (Int, Int),
        _ facts: ScreenFacts,
        unit: ScreenTools.Unit? = nil,
        whole: Bool = false
    ) -> [Double] {
        let geometry = ScreenGeometry(picture: (picture.0, picture.1), facts, unit: unit)
        let point = geometry.point(ScreenInput.Point(x: x, y: y), whole: whole)
        return [point.x, point.y]
    }

    @Test func `fractions become points, pixels, or the reported size of the screen`() {
        let phone = (1_206, 2_622)
        let size = ScreenFacts.Size(["width": 390, "height": 844])
        #expect(Self.point(0.5, 0.25, phone, ScreenFacts(scale: 3)) == [201, 218.5])
        #expect(Self.point(0.5, 0.25, phone, ScreenFacts(scale: 3), unit: .pixels) == [603, 655.5])
        #expect(Self.point(0.5, 0.25, phone, ScreenFacts(scale: 3, takesPixels: true)) == [603, 655.5])
        #expect(Self.point(0.5, 0.25, phone, ScreenFacts()) == [603, 655.5])
        #expect(Self.point(0.5, 0.5, (1_170, 2_532), ScreenFacts(size: size, scale: 3)) == [195, 422])
        #expect(Self.point(0.5, 0.5, (2_532, 1_170), ScreenFacts(size: size)) == [422, 195])
        #expect(Self.point(1, 1, phone, ScreenFacts(scale: 3)) == [401, 873])
        #expect(Self.point(0.333, 0.333, phone, ScreenFacts(scale: 3), whole: true) == [133, 291])
    }

    @Test func `the scale follows from the frame of a window, else from the pixels of a phone`() {
        let list: JSON = [
            ["frame": ["x": 0, "y": 0, "w": 100, "h": 40]], ["frame": ["x": 0, "y": 0, "w": 402, "h": 874]],
        ]
        #expect(ScreenFacts.scale(of: (1_206, 2_622), elements: list) == 3)
        #expect(ScreenFacts.scale(of: (1_206, 2_622), elements: ["elements": list]) == 3)
        #expect(ScreenFacts.scale(of: (800, 2_622), elements: list) == nil)
        #expect(ScreenFacts.scaleOfIOS((1_179, 2_556)) == 3 && ScreenFacts.scaleOfIOS((2_388, 1_668)) == 2)
    }
}
