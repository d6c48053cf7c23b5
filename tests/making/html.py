"""What is in a page, by the parser of the standard library."""

from html.parser import HTMLParser

VOID = {"meta", "input", "br", "img", "link", "hr", "wbr"}


class Read(HTMLParser):
    """All elements with their attributes, and all text outside style and script; each element is closed."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.sources, self.inside, self.open = [], [], {}, "", []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert len(attrs) == len({key for key, _ in attrs}), f"{tag} has an attribute twice"
        self.elements.append((tag, dict(attrs)))
        self.inside = tag if tag in ("style", "script") else ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"
        self.inside = ""

    def handle_data(self, data):
        if self.inside:
            self.sources.setdefault(self.inside, []).append(data)
        else:
            self.texts.append(data)

    def ids(self):
        return [attrs["id"] for _, attrs in self.elements if "id" in attrs]

    @property
    def text(self):
        return "".join(self.texts)
