"""Labels: a role gives a flow tag, its loss moves the tag on, and two nodes mean the same by one global name."""

from maia.errors import FlowError
from maia.labels import PUBLIC, Label, LocalTags, Privilege, can_change, can_flow, is_global, read_as
from maia.policy import PolicyEngine, TagBook, parse_policy

RULES = """\
treating_doctor(self, patient) <- referred(self, patient)*
treating_doctor(doctor, patient) |- clinical(patient)
"""
TAG = "clinical(patterson)"
URI = "https://nhs.example/tags/identifiable"

engine, book = PolicyEngine(parse_policy(RULES)), TagBook({"clinical"})
for doctor in ("ali", "brown"):
    engine.appoint(f"referred({doctor}, patterson)")
    engine.activate(f"treating_doctor({doctor}, patterson)", principal=doctor)
book.follow(engine.privileges())

first = Label(secrecy=frozenset({book.current(TAG)}))
copy = read_as(PUBLIC, first, book.held("brown"))  # a light copy; Brown himself stays public
print("brown reads, and the copy may go public:", can_flow(copy, PUBLIC))
print("brown may take the tag off:", can_change(copy, PUBLIC, book.held("brown")))

engine.retract("referred(brown, patterson)")
book.follow(engine.privileges())
second = Label(secrecy=frozenset({book.current(TAG)}))
for name, report in (("earlier", first), ("later", second)):
    for doctor in ("ali", "brown"):
        try:
            read_as(PUBLIC, report, book.held(doctor))
            print(f"{doctor} reads the {name} report")
        except FlowError as error:
            print(f"{doctor} is refused the {name} report: {error.code}")

owner = Privilege.over("identifiable")  # whoever makes a tag holds its four powers, and may give each away
counter = owner.delegate(Privilege(declassify=frozenset({"identifiable"})))
print("the counter lets out:", can_flow(Label(secrecy=frozenset({"identifiable"})), PUBLIC, counter.with_(Privilege())))

hospital, registry = (LocalTags(resolve=is_global) for _ in range(2))
hospital.create("identifiable", uri=URI)
registry.create("ward")
registry.create("person", uri=URI)
sent = hospital.globalise(Label(secrecy=frozenset({"identifiable"})))
arrived = registry.localise(sent)
print("the same bits on both nodes:", arrived == hospital.localise(sent))
print("the same meaning:", arrived == registry.localise(Label(secrecy=frozenset({"person"}))))
print("public there:", registry.flows(arrived, registry.localise(PUBLIC)))
